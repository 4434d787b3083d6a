"""Claims: the factual sentences of a corpus, each reworded to stand alone.

"She was born in Paris." means nothing outside its page. If a sentence is about the page's own
subject ("He", "The film", the surname alone), the rules substitute the page's title. They add
nothing else, and `is_consistent` checks that. A sentence with an unknown subject makes no claim
about the page.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from unicodedata import normalize

from suffice.lexicon import FUNCTION_WORDS, MONTHS
from suffice.text import sentences, title_key, tokens
from suffice.types import Document
from suffice_grade.layout import LayoutFact, is_subject, read_layout
from suffice_grade.stage_protocols import Claim
from suffice_grade.terms import CorpusTerms, collect_terms
from suffice_grade.vocabulary import (
    AREAS,
    COUNTRIES,
    FIRST_NAMES,
    KINDS,
    NATIONALITIES,
    RANKS,
    SEX_OF_NAME,
    SEX_OF_WORD,
    TITLE_NOUNS,
    any_of,
    base_title,
    without_rank,
)

MIN_WORDS, MAX_WORDS = 4, 80
MAX_NAME_WORDS = 4  # in a title that may be a person's name
HEADLINE = "headline"  # the kind of a page whose title is not a name


def fix_spacing(text: str) -> str:
    """Correct the spacing: some data sets have "( born 1975)" and "Saxe- Meiningen"."""
    text = re.sub(r"<br ?/?>|\s+", " ", normalize("NFC", text))  # NFC: "é" may be two characters
    text = re.sub(r"  +", " ", text)
    text = re.sub(r"\(\s+", "(", re.sub(r"\s+\)", ")", text))
    text = re.sub(r"(?<=[\w.\"])\(", " (", text)
    text = re.sub(r"(?<=\w)- (?=\w)| -(?=[a-z])", "-", text)
    text = re.sub(r"(?<=\w)& (?=[A-Z])", " & ", text)
    text = re.sub(r"\b([dl]['’]) (?=[A-Z])", r"\1", text)
    text = re.sub(r"\s+(?=[,.;:](?:\s|$))", "", text)
    text = re.sub(r" -- ", " – ", text)
    text = re.sub(r"(?<=[a-z]) - (?=[a-z])", "-", text)
    if "``" in text:  # ``Angel ''is a song
        text = re.sub(r"`` ?|(?<=\w)``(?=\s)| ?''(?=\w)|''", '"', text)
    parts = text.split('"')
    if len(parts) % 2 == 0:  # unbalanced quotation marks: cannot be assigned
        return text
    for at in range(1, len(parts), 2):
        before, after = parts[at - 1], parts[at + 1]
        parts[at] = parts[at].strip()
        parts[at - 1] += " " if before and before[-1].isalnum() else ""
        parts[at + 1] = (" " if after[:1].isalnum() or after[:1] == "(" else "") + after
    return '"'.join(parts)


_HEDGED = re.compile(rf"\b{any_of('hedges')}\b")
# "I" is a numeral in "Reginald I of Guelders" and "World War I", but a pronoun in "Today I".
_NUMERAL = re.compile(r"(?<=\w )[A-Z][\w’'-]+ I\b|^[A-Z][\w’'-]+ I(?=,| [(]| of\b)")


def is_factual(sentence: str) -> bool:
    """Whether a sentence states a fact and is not a question, wish, rumour, heading or list."""
    if not MIN_WORDS <= len(sentence.split()) <= MAX_WORDS:
        return False
    ending = sentence.rstrip('"”').endswith(("?", "!", ":"))
    return not ending and _HEDGED.search(_NUMERAL.sub("", sentence)) is None


# ------------------------------------------------------------------------------------------- pages

_IS = re.compile(r"\b(?:is|was|are|were)\b")
_DEFINED = re.compile(
    r"\b(?:is|was|are|were) (?:(?:first|also|originally|primarily|mainly) )?"
    r"(?:an?|the|one of the) (?P<what>[^,.;(]*)"
)
# "is a 2008 Dutch, German and Finnish documentary film": the noun comes after the commas.
_LISTED = re.compile(r"(?:[12]\d{3} )?(?:[A-Z]\w+(?:, | and |/ ?))+(?=[A-Z])")
# The end of the first noun phrase in a definition.
_AFTER_NOUN = re.compile(rf" {any_of('after_noun')}\b")
_LIVED = re.compile(
    r"\((?:[^()]*\b(?:born|died|b\.|d\.) |[^()]*\d{3,4}[^()]{0,80}[–—-])[^()]*\d{3,4}"
)


@dataclass(frozen=True, slots=True)
class Page:
    """What is known about the thing that a document's title names."""

    title: str
    # person, film, song, place, ..., "list" or HEADLINE; "" if the first sentence does not say
    kind: str = ""
    noun: str = ""  # the page's own word: "film", "novel", "village"
    sex: str = ""  # man, woman
    defined: str = ""  # the first noun phrase that defines it: "American film director"
    called: str = ""  # another first name of a person with a rank


def parse_page(document: Document) -> Page:
    """What the document is about, according to its first sentence."""
    title = document.title.strip()
    first = next(iter(sentences(fix_spacing(document.text[:2000]))), "")
    plain = re.sub(r"\([^()]*\)", "", first)
    listing = title.endswith("(disambiguation)")
    if listing or re.search(r"\b(?:may|can|could) (?:also )?refer to\b", first):
        return Page(title, "list")
    if _is_headline(document, plain):
        return Page(title, HEADLINE)
    # The title may be in the parenthesis: "Un uomo in ginocchio (released as A Man on His Knees)".
    if not title or not (_opens_with(plain, title) or f"{base_title(title)})" in first[:200]):
        noun = _noun_in_parenthesis(title)
        return Page(title, KINDS.get(noun, ""), noun)
    listed = _DEFINED.search(plain)
    if listed and (several := _LISTED.match(plain, listed.start("what"))):
        plain = plain[: listed.start("what")] + plain[several.end() :]
    match = _DEFINED.search(plain)
    defined = _AFTER_NOUN.split(" " + match["what"], maxsplit=1)[0].strip() if match else ""
    # The last noun decides: "American film director" is a person, "1981 Filipino film" a film.
    words = [word.casefold() for word in reversed(re.split(r"[^\w]+", defined))]
    forms = (form for word in words for form in (word, word.removesuffix("s")))
    noun = next((form for form in forms if form in KINDS), "")
    if noun and words[0] not in KINDS and _DOES.search(words[0]):
        noun = ""  # "a community organizer" is not a community
    # "The Lake War (1823-1841)" has years but is not a person.
    nobody = title.split()[-1].casefold() in {*TITLE_NOUNS, "family"} or "family" in title.split()
    lived = not nobody and _LIVED.search(first)
    if not noun and title and (named := title.split()[-1].casefold()) in KINDS:
        # "Rosehill Secondary College is located in Niddrie": the title says what it is.
        noun = named if KINDS[named] in _NAMED_KINDS else ""
    noun = noun or _noun_in_parenthesis(title)
    if not noun and (realm := _REALM.match(title)):
        noun = realm[1].casefold()
    if not noun and _DIRECTED.search(plain):  # "is a 1931 Danish drama directed by"
        noun = "film"
    kind = KINDS[noun] if noun else "person" if lived or _is_somebody(title, document.text) else ""
    sex = _sex(title, defined, document.text) if kind == "person" else ""
    return Page(title, kind, noun, sex, defined, _called(title, first) if kind == "person" else "")


def _called(title: str, first: str) -> str:
    """Another first name that a page uses: "Marie" if "Maria, Countess of Fell" opens with it."""
    ranked = _RANKED_TITLE.search(title)
    opening = re.match(r"(?P<name>[^\W\d_a-z]\w+) of [^\W\d_a-z]", without_rank(first))
    known = title.split()[0].rstrip(",")
    name = opening["name"] if ranked and opening and ranked.start() == len(known) else ""
    return name if name[:2] == known[:2] and name not in (known, *RANKS) else ""


def _is_headline(document: Document, first: str) -> bool:
    """Whether an article's title is a headline rather than the name of its subject.

    "Mette Holm retires" is not a name: a name appears in full in the first sentence.
    """
    title = document.title.strip()
    says = len(title.split()) > MAX_NAME_WORDS or re.search(r": | [a-z]{4,}\b", title) is not None
    article = bool(document.source) and document.published_at is not None
    return article and says and " ".join(tokens(base_title(title))) not in " ".join(_lead(first))


def _noun_in_parenthesis(title: str) -> str:
    """What a title's parenthesis says its page is: "film" in "Chicago (2002 film)"; else ""."""
    inside = title[len(base_title(title)) :].strip(" ()").casefold().split()
    return inside[-1] if inside and inside[-1] in KINDS else ""


_DIRECTED = re.compile(r"\b(?:is|was) an? (?:[12]\d{3} )[\w -]+? directed by\b")
_REALM = re.compile(r"(Kingdom|Republic|Province|District|County|Island|Lake) of ")
_DOES = re.compile(r"(?:iz|[^n]t|ch|d)er$|[aeiou]tor$|[a-z]{3}ist$")
_NAMED_KINDS = frozenset(("place", "building", "school", "company", "paper"))
_SOMEBODY = re.compile(r"[.)] (?:He|She) (?:is|was|died|married|had|became|served)\b")
_RANKED_TITLE = re.compile(
    rf", (?:\d+(?:st|nd|rd|th) )?(?:{'|'.join(filter(str.isalpha, RANKS))}) (?:of|von|de) "
)
_BORN = re.compile(r"[^,;.]{3,60} was born (?:in|on|at|to|into)\b")


def _is_somebody(title: str, text: str) -> bool:
    """Whether a page that does not say what it is about is about a person.

    Its title has a rank, it says where someone was born, its second sentence is about a person, or
    its title is a person's name and it goes on with "he" or "she".
    """
    if _RANKED_TITLE.search(title):
        return True
    opening = sentences(text[:1200])
    if _BORN.match(opening[0]) or _SOMEBODY.search(" ".join(opening[:2])):
        return True
    words = base_title(title).split()
    named = words[0].casefold() in FIRST_NAMES or words[0] in SEX_OF_NAME
    capital = len(words) > 1 and all(re.fullmatch(r"[^\W\da-z][\w.'’-]*", one) for one in words)
    said = tokens(" ".join(opening[1:]))
    return named and capital and "it" not in said and bool({"he", "she"} & set(said))


def parse_pages(documents: Iterable[Document]) -> dict[str, Page]:
    """The page of each title, from the first document with that title that says what it is."""
    known: dict[str, Page] = {}
    called: dict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        page = parse_page(document)
        if page.title not in known or (page.kind and not known[page.title].kind):
            known[page.title] = page
        for match in _CALLED.finditer(document.text):
            called[match["name"]][match["noun"]] += 1
    for title, page in known.items():
        # A later part of an article does not say what it is about; other documents do.
        open_to = not page.kind or title in COUNTRIES  # defined as "a sovereign state"
        if open_to and (noun := _place_noun(base_title(title), called)):
            known[title] = replace(page, kind="place", noun=noun)
    return known


# "the U.S. state of Ohio", "the city of Detroit"
_CALLED = re.compile(
    rf"\b[Tt]he (?:[A-Z][\w.]+ )?(?P<noun>{'|'.join(AREAS)}) of "
    r"(?P<name>[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)?)"
)
MIN_CALLED = 2  # documents that must use the word


def _place_noun(name: str, called: Mapping[str, Counter[str]]) -> str:
    """What the corpus calls a place: "state" if it says "the state of Ohio"; else ""."""
    if name in COUNTRIES:
        return "country"
    nouns = called.get(name, Counter())
    ((noun, count),) = nouns.most_common(1) or [("", 0)]
    return noun if count >= MIN_CALLED and count >= 0.8 * nouns.total() else ""


def _sex(title: str, defined: str, text: str) -> str:
    """By the person's definition, then by rank, then by the pronouns of the page.

    The definition comes first: "Khan" is a rank in one name and a surname in the next.
    """
    for words in (tokens(defined), re.split(r"\W+", title)):
        sexes = {RANKS.get(word) or SEX_OF_WORD.get(word, "") for word in words} - {""}
        if len(sexes) == 1:
            return sexes.pop()
    words = tokens(text)
    men = sum(words.count(word) for word in ("he", "his", "him"))
    women = sum(words.count(word) for word in ("she", "her", "hers"))
    return "" if men == women else "man" if men > women else "woman"


def _opens_with(sentence: str, title: str) -> bool:
    """Whether the words before the verb share the title's last or first word."""
    lead = _lead(sentence)
    key = title_key(normalize("NFC", title)).split()
    given = title_key(without_rank(normalize("NFC", title))).split()[:1]  # "Princess Elene"
    return bool(key) and (key[-1] in lead or key[0] in lead or given[0] in lead)


def _lead(sentence: str) -> list[str]:
    """The words before the verb."""
    verb = _IS.search(sentence)
    return tokens(sentence[: verb.start()] if verb else sentence[:80])


class PageIndex:
    """The pages of a corpus by name, to find the title that a name refers to."""

    def __init__(self, pages: Iterable[Page], documents: Iterable[Document] = ()) -> None:
        documents = list(documents)
        self.title_of = {document.doc_id: document.title.strip() for document in documents}
        self.title_counts = Counter(self.title_of.values())
        self.terms = collect_terms(documents)
        self.by_title: dict[str, Page] = {}
        self.joined: set[str] = set()  # pairs of words whose "and" belongs to one name
        self._by_key: dict[str, list[str]] = defaultdict(list)
        self._by_first_word: dict[str, list[str]] = defaultdict(list)
        first_names: dict[str, Counter[str]] = defaultdict(Counter)
        for page in pages:
            if page.title and page.title not in self.by_title:
                self._by_key[title_key(page.title)].append(page.title)
                self._by_first_word[page.title.split()[0]].append(page.title)
            if page.title and (page.title not in self.by_title or page.kind):
                self.by_title[page.title] = page
            self.joined.update(re.findall(r"[A-Z][\w-]+ and [A-Z][\w-]+", page.title))
            if page.sex:
                first_names[_first_name(page.title)][page.sex] += 1
        # First names that the corpus uses for one sex: at least three times, and nine times in ten.
        self._sex_of_name = {
            name: sex
            for name, counts in first_names.items()
            for sex, count in counts.most_common(1)
            if count >= 3 and count >= 0.9 * counts.total()
        }

    def kind(self, title: str) -> str:
        page = self.by_title.get(title)
        return page.kind if page else ""

    def sex(self, name: str, *, by_name: bool = True) -> str:
        """By the page, the rank or the first name; "" if none of them tells."""
        page = self.by_title.get(name)
        by_rank = (RANKS[word] for word in re.split(r"[ ,]+", name) if RANKS.get(word))
        first = _first_name(name)
        given = self._sex_of_name.get(first) or SEX_OF_NAME.get(first, "")
        return (page.sex if page else "") or next(by_rank, "") or (given if by_name else "")

    def find(self, name: str, kind: str = "", hints: Sequence[str] | None = None) -> str | None:
        """The only title that this name can refer to, among pages of that `kind` ("": any).

        A person whose title has a parenthesis shares the name with others. With `hints`, the
        parenthesis must contain one of them.
        """
        fitting = [
            title
            for title in self._by_key.get(title_key(name), ())
            if (not kind or self.kind(title) in (kind, "")) and self.kind(title) != "list"
        ]
        if len(fitting) != 1:
            return None
        (title,) = fitting
        parenthesis = title[len(base_title(title)) :].casefold()
        if kind == "person" and parenthesis and hints is not None:
            return title if any(word in parenthesis for word in hints) else None
        return title

    def in_full(self, name: str, text: str) -> str:
        """The person's title that the text has where it has this name, if longer; else the name.

        "the son of John of Ibelin, the Old Lord of Beirut, and": the comma belongs to the title.
        """
        at = text.find(name)
        longer = (
            title
            for title in self._by_first_word.get(name.split(" ")[0], ())
            if len(title) > len(name)
            and title.startswith(name)
            and text.startswith(title, at)
            and re.match(r"\W|$", text[at + len(title) :])
            and self.kind(title) == "person"
        )
        return max(longer, key=len, default=name)


def _first_name(name: str) -> str:
    return without_rank(name).split(" ")[0].strip(",")


# ------------------------------------------------------------------------------------------ claims

_NAMES_ANOTHER = re.compile(rf"(?:The )?(?!{any_of('opens_adverbially')}\b)[A-Z]\w+")
# After a sentence that introduces a relative, a pronoun may refer to the relative.
_KIN = re.compile(
    r"(?:His|Her|\w+'s) (?:[\w-]+ ){0,2}(?:father|mother|brother|sister|son|daughter|wife|husband|"
    r"uncle|aunt|nephew|niece|cousin|grand\w+|child|successor|predecessor)\b"
)
_LATER = re.compile(
    r"(?P<when>(?:(?:In|On|At|From|Since|By|Around|After|Until) [^,;]{1,40}, |"
    rf"(?:In|On|From|Since|By) (?:(?:\d{{1,2}} )?(?:{'|'.join(MONTHS)}) (?:\d{{1,2}}, )?)?"
    r"[12]\d{3} |Born (?:in|on|at) [^;]{1,60}?, ))"
    r"(?:(?P<who>he|she|it)|the (?P<noun>[a-z]+))(?= [a-z])"
)
# "Around 1098, Ramiro was married": the name follows a date.
_DATED = re.compile(
    rf"(?:In|On|From|Since|By|Around) (?:(?:\d{{1,2}} )?(?:{'|'.join(MONTHS)}) (?:\d{{1,2}}, )?)?"
    r"[12]\d{3},? "
)
_PRONOUN = re.compile(r"(?P<who>He|She|It)(?= [a-z])|(?P<whose>His|Her|Its)(?= [a-z])")
_THE_NOUN = re.compile(r"(?:The|This) (?P<noun>[a-z]+)(?P<whose>'s)?(?= )")
# "The son of Mark Hanna, he ...", "Directed by Sam Wood, the film ...".
_APPOSITION = re.compile(
    r"(?P<what>(?:(?:(?:The|An?) )?(?:[\w-]+ ){0,5}?(?:[Ss]on|[Dd]aughter|[Cc]hild) (?:of|to)|"
    r"(?:Directed|Written|Produced|Composed)(?: and [a-z]+)? by) [^;]{4,120}?), "
    r"(?:(?P<who>he|she|it)|the (?P<noun>[a-z]+))(?= [a-z])"
)
_CHILD_OF = re.compile(
    r"(?:(?:The|An?) )?(?:[\w-]+ ){0,5}?(?:[Ss]on|[Dd]aughter|[Cc]hild) (?:of|to) "
)
# "A member of the Romanov dynasty, she was ...", "Born in Weimar, Duchess Anna was ..."
_OPENED = re.compile(
    r"(?P<when>(?:(?:An?|The|Known|Styled|Raised|Educated|As) [^,;.]{3,90}|"
    r"Born (?:in|on|at|into) [^;.]{1,90}?), )(?P<rest>(?P<who>he|she)?.*)"
)
_TITLE_VERB = re.compile(rf"(?:,| {any_of('after_title')}\b|'s |\s?\()")


_PAST = re.compile(r" [a-z]+ed ")  # "Holm emigrated to Oslo"


class RuleClaims:
    """Claims by rules: split sentences, keep factual ones, replace pronouns by the page's subject.

    Facts from the layout, the outlet and the date become sentences too. `pages` describes the
    titles of the whole corpus, and `terms` is its vocabulary; both default to these documents.
    """

    def __init__(
        self, pages: Mapping[str, Page] | None = None, terms: CorpusTerms | None = None
    ) -> None:
        self.pages, self.terms = pages, terms

    def claims(self, documents: Sequence[Document]) -> list[tuple[Claim, ...]]:
        # A later part of a long article does not say what it is about; look it up by title.
        pages = parse_pages(documents) if self.pages is None else self.pages
        terms = collect_terms(documents) if self.terms is None else self.terms
        return [
            tuple(self._claims(document, pages.get(document.title.strip(), Page("")), terms))
            for document in documents
        ]

    def _claims(self, document: Document, page: Page, terms: CorpusTerms) -> list[Claim]:
        layout = read_layout(document, terms.keys)
        full = full_names(document.text, terms) if page.kind in ("", HEADLINE) else {}
        found: list[Claim] = []
        about = False  # whether the last sentence was about the page, so that pronouns refer to it
        at = 0
        for paragraph in layout.paragraphs:
            for sentence in sentences(fix_spacing(paragraph)):
                subject, text = _standalone(sentence, page, first=at == 0, about=about)
                about = _stays(sentence, page, about=about or bool(subject), named=bool(subject))
                text = with_full_names(text, full) if full and not subject else text
                known = f"{page.title} {' '.join(full.values())}"
                if is_factual(_unquoted(sentence)) and is_consistent(text, sentence, known):
                    claim_id = f"{document.doc_id}#{at}"
                    found.append(Claim(claim_id, document.doc_id, subject, text, sentence))
                at += 1
        # Number 0 is reserved for the first sentence, which says what the page is about.
        for number, fact in enumerate((*layout.facts, *_metadata(document)), max(at, 1)):
            claim_id = f"{document.doc_id}#{number}"
            text = fact_sentence(fact.subject, fact.relation, fact.object)
            found.append(Claim(claim_id, document.doc_id, fact.subject, text, fact.line))
        return found


def fact_sentence(subject: str, relation: str, value: str) -> str:
    """A layout fact as a standalone sentence; `parse_fact` reads it back."""
    return f"The {relation} of {subject} is {value}."


def parse_fact(claim: Claim) -> tuple[str, str] | None:
    """The relation and the object in a sentence written by `fact_sentence`."""
    before, found, after = claim.text.partition(f" of {claim.subject} is ")
    if not claim.subject or not found or not before.startswith("The ") or len(before.split()) > 7:
        return None
    return before.removeprefix("The "), after.removesuffix(".")


def _metadata(document: Document) -> Iterator[LayoutFact]:
    """The outlet and the date of an article."""
    title = document.title.strip()
    if title and document.source:
        line = f"source: {document.source}"
        yield LayoutFact(title, "outlet", document.source.strip(), line)
    if title and document.source and (day := document.published_at):
        written = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
        yield LayoutFact(title, "publication date", written, f"published_at: {day.isoformat()}")


_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"")


def _unquoted(sentence: str) -> str:
    """The sentence without quotations: "I" inside a quotation is no hedge."""
    return _QUOTED.sub('"said words"', sentence) if '"' in sentence or "“" in sentence else sentence


_PERSON = re.compile(r"(?<![\w’'-])[A-Z][\w’'-]+(?: [A-Z]\.)? [A-Z][\w’'-]+(?! [A-Z])")


def full_names(text: str, terms: CorpusTerms) -> dict[str, str]:
    """The last name of each person that a text names in full -> the only full name with it.

    A first name is a common one, or a word that the corpus never writes in lower case. In the
    second case, the last name must be that of a speaker ("Cue said") and must not be used before
    the full name.
    """
    speaking = {match["name"] or match["after"] for match in _SPEAKING.finditer(text)}
    found: dict[str, set[str]] = defaultdict(set)
    called: dict[str, set[str]] = defaultdict(set)  # also names that may not be persons
    for match in _PERSON.finditer(text):
        name = re.sub(r"['’]s?$", "", match.group())
        first, last = name.split()[0], name.split()[-1]
        small = first.casefold()
        if first in _HONORIFICS:
            continue
        rare = small not in FUNCTION_WORDS and small not in terms.small
        if rare or small in FIRST_NAMES:
            called[last].add(name)
        introduced = text.find(last) == match.start() + len(name) - len(last)
        named = rare and last in speaking and (introduced or name in found[last])
        if (small in FIRST_NAMES or named) and len(last) > 2 and first not in NATIONALITIES:
            found[last].add(name)
    return {
        last: names.pop()
        for last, names in found.items()
        if names == called[last] and len(names) == 1
    }


_SPEAKING = re.compile(
    r"(?P<name>[A-Z][\w’'-]+) (?:said|says|told|added|wrote|explained)\b"
    r"|(?:said|says|added|explained) (?P<after>[A-Z][\w’'-]+)(?=[,.])"
)


def with_full_names(text: str, full: Mapping[str, str]) -> str:
    """The text with standalone last names written in full."""

    def whole(match: re.Match[str]) -> str:
        name = match["name"]
        alone = match.group().removesuffix(name).strip(" .") in _HONORIFICS
        return full[name] if name in full and alone else match.group()

    return _ALONE.sub(whole, text)


_HONORIFICS = ("", "Mr", "Mrs", "Ms")
_ALONE = re.compile(r"(?:[A-Z][\w.’'-]* )*(?P<name>[A-Z][\w-]+)(?![\w-]| [A-Z])")


def _standalone(sentence: str, page: Page, *, first: bool, about: bool) -> tuple[str, str]:
    """The sentence's subject, and the sentence with it filled in; "" if the subject is unknown."""
    name = base_title(page.title)
    if not name or page.kind == HEADLINE:
        return "", sentence
    if first and _opens_with(re.sub(r"\([^()]*\)", "", sentence), page.title):
        return page.title, sentence
    if (rest := _after_name(sentence.lstrip('"'), page)) is not None:
        return page.title, name + rest
    if about and (match := _PRONOUN.match(sentence)) and _fits(match.group(), page):
        return page.title, name + ("'s" if match["whose"] else "") + sentence[match.end() :]
    if (text := _after_parents(sentence, page) or _after_opener(sentence, page, about)) is not None:
        return page.title, text
    match = _THE_NOUN.match(sentence)
    if match and page.noun and match["noun"] in (page.noun, page.kind):
        return page.title, name + (match["whose"] or "") + sentence[match.end() :]
    return "", sentence


def _after_opener(sentence: str, page: Page, about: bool) -> str | None:
    """The sentence with the name after its opening words: "In 1902 she", "As a child, she"."""
    name, noun = base_title(page.title), page.noun
    if match := _LATER.match(sentence):
        pronoun = about and match["who"] and _fits(match["who"].title(), page)
        if pronoun or (noun and match["noun"] == noun):
            return match["when"] + name + sentence[match.end() :]
    dated = _DATED.match(sentence)
    if dated and (rest := _after_name(sentence[dated.end() :], page)) is not None:
        return dated.group() + name + rest
    if page.kind == "person" and (match := _OPENED.match(sentence)):
        if match["who"] and about and _fits(match["who"].title(), page):
            return match["when"] + name + match["rest"][len(match["who"]) :]
        if (rest := _after_name(match["rest"], page)) is not None:
            return match["when"] + name + rest
    return None


def _after_parents(sentence: str, page: Page) -> str | None:
    """The sentence with the name before what it opens with: "The son of Mark Hanna, he"."""
    name, noun = base_title(page.title), page.noun
    if match := _APPOSITION.match(sentence):
        pronoun = match["who"] and _fits(match["who"].title(), page)
        if pronoun or (noun and match["noun"] in (noun, page.kind)):
            what = match["what"][0].lower() + match["what"][1:]
            return f"{name}, {what},{sentence[match.end() :]}"
    if page.kind == "person" and _CHILD_OF.match(sentence):
        for comma in re.finditer(", ", sentence):
            if (rest := _after_name(sentence[comma.end() :], page)) is not None:
                return f"{name}, {sentence[0].lower()}{sentence[1 : comma.start()]},{rest}"
    return None


def _after_name(sentence: str, page: Page) -> str | None:
    """The sentence after the name of the page that it starts with; None if it does not."""
    name = base_title(page.title)
    short = (*_short_names(page), page.called) if page.called else _short_names(page)
    for lead in dict.fromkeys((name, name.split(",")[0], *short)):
        for start in {sentence, without_rank(sentence)} if page.kind == "person" else {sentence}:
            rest = start[len(lead) :].lstrip('"')
            verb = _TITLE_VERB.match(rest) or (page.kind == "person" and _PAST.match(rest))
            if start.startswith(lead) and verb:
                return rest
    return None


def _stays(sentence: str, page: Page, *, about: bool, named: bool) -> bool:
    """Whether a pronoun in the next sentence refers to the page's subject."""
    if page.kind == "person" and _KIN.match(sentence):
        return False
    if not named and page.sex:  # "Back in Paris, she ...": still the same person
        pronoun = "he" if page.sex == "man" else "she"
        named = re.search(rf"(?:^|, ){pronoun} [a-z]", sentence) is not None
    return about and (named or not _NAMES_ANOTHER.match(sentence))


def _short_names(page: Page) -> tuple[str, ...]:
    """Short names for a page's person in later sentences: the surname, or a ruler's first names."""
    name = base_title(page.title).split(",")[0]
    words = without_rank(name).split()
    numbered = len(words) == 2 and re.fullmatch(r"[IVX]+", words[1])  # Gothelo I
    ranked = len(words) == 1 and words[0] != base_title(page.title).split(",")[0]  # Sultan Cem
    if page.kind == "person" and (numbered or ranked):
        return (words[0],)
    if page.kind != "person" or len(words) < 2:
        return ()
    if peer := _PEER.search(page.title):  # "Effingham", "Lord Effingham"
        return (*_surname(words), peer["of"])
    if "of" in words[1:]:
        given = words[: words.index("of", 1)]
        return (name.split(" of ")[0], " ".join(given), given[0])
    if "the" in words[1:]:  # Edward the Confessor
        return (" ".join(words[: words.index("the", 1)]),)
    return _surname(words)


# "Henry Howard, 4th Earl of Effingham"
_PEER = re.compile(
    r", \d+\w\w (?:Earl|Baron|Viscount|Marquess|Duke) (?:of )?(?P<of>[A-Z][\w’'-]+)$"
)


def _surname(words: Sequence[str]) -> tuple[str, ...]:
    """The surname and the first names, if the last word is a surname."""
    surname = words[-1]
    is_name = len(surname) > 2 and not re.fullmatch(r"[IVX]+|Jr\.?|Sr\.?", surname)
    return (surname, " ".join(words[:-1])) if is_name else ()


def _fits(pronoun: str, page: Page) -> bool:
    sex = {"He": "man", "His": "man", "She": "woman", "Her": "woman"}.get(pronoun)
    if sex is None:
        return page.kind != "person" if page.kind else is_subject(page.title)
    return page.kind == "person" and page.sex in (sex, "")


def is_consistent(claim: str, sentence: str, title: str) -> bool:
    """Whether every word of the claim is in the sentence or in the title."""
    return not set(tokens(claim)) - set(tokens(sentence)) - set(tokens(title)) - {"s"}
