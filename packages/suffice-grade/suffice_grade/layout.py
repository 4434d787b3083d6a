"""Facts from a text's layout: key-value lines, tables, headings, definitions, manual pages.

    Owner: Mira Holt                the line's subject is the heading or title above it
    | service | port |              the first column has the subjects, the header the relations
    ls - list directory contents    the NAME of a manual page
    -a, --all   do not ignore ...   an option of a manual page

`read_layout` returns these facts and the remaining prose, paragraph by paragraph, so that a heading
or a row never runs into a sentence. If the subject is uncertain there is no fact: a chat line
("Anna: can you call me?") also looks like a key and a value. One pass, linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from suffice.lexicon import FUNCTION_WORDS, MONTHS, WEEKDAYS
from suffice.text import date_mentions, title_key, tokens
from suffice.types import Document
from suffice_grade.terms import KEY
from suffice_grade.vocabulary import ATTRIBUTES, GENERIC_HEADINGS, NAMING_KEYS, NOT_KEYS

MAX_VALUE_WORDS = 14
MAX_LINE, MAX_OPTION = 2_000, 80  # characters; longer lines are prose, longer options invalid
MAX_COLUMNS, MAX_ROWS, MAX_FACTS = 24, 2_000, 4_000  # per document


class LayoutFact(NamedTuple):
    """A fact and the line that states it."""

    subject: str
    relation: str
    object: str
    line: str


@dataclass
class Layout:
    """The facts, the headings and the paragraphs of prose of one document."""

    facts: list[LayoutFact] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)


_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(?P<text>\S.*?)\s*#*$")
_RULE = re.compile(r"\s*(?:[-=*_]\s?){3,}$")
_BULLET = re.compile(r"\s*(?:[-*•+–]|\d{1,2}[.)])\s+")
_SEPARATOR = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"(?<![\w`])(?:\*\*|__|\*|_)(?=\S)|(?<=\S)(?:\*\*|__|\*|_)(?![\w`])|`")
_KEY_VALUE = re.compile(rf"(?P<key>{KEY})\s?(?::|=)\s+(?P<value>\S.*)$")
_DEFINED = re.compile(r"(?P<term>`[^`]{1,60}`|\*\*[^*]{1,60}\*\*)(?::| [-–—])\s+(?P<text>\S.*)$")
_SPLIT = re.compile(r"(?<=[\w)%])[.;,]\s+(?=[^\W\d_][\w/-]*(?: [\w/&-]+){0,3}:\s)")
_TIME = re.compile(r"\s*[\[(]?\d{1,2}[:.]\d{2}\b|\s*[\[(]?\d{4}-\d\d-\d\d")
_MANUAL = re.compile(r"^[A-Z][A-Z ]+$", re.MULTILINE)
_PAGE_NAME = re.compile(r"^(?P<names>[\w.+:-]+(?:, [\w.+:-]+)*) (?:-|–|—|\\-) (?P<what>\S.*)$")
_OPTION = re.compile(
    r"^(?:-{1,2}[\w?@#-]+(?:[ =]?[\[<]?[\w.,|\[\]<>-]+)?)(?:, ?-{1,2}[\w?-]+(?:[ =]?\S+)?)*$"
)
_NO_VALUES = frozenset(("", "n a", "na", "none", "tbd", "tbc", "unknown", "todo", "yes", "no", "x"))
_NO_VALUES |= {"likewise", "the same", "same", "ditto", "example", "see above", "see below"}
_FINITE = frozenset("is was are were has had will can must should".split())
_SHARE = re.compile(r"[-+−]?[01]?\.\d+")  # a figure between 0 and 1
_OPENS_SENTENCE = frozenset(
    "how what when where why who which if using adding making we you i".split()
)


def plain(text: str) -> str:
    """Text without markdown: emphasis, code marks and link targets."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", text)).split())


def read_layout(document: Document, keys: Collection[str] = ()) -> Layout:
    """The facts and prose of a document. `keys` are the corpus's own words for properties."""
    lines = document.text.splitlines()
    if _is_manual(lines):
        return _read_manual(document.title.strip(), lines)
    if len(lines) == 1 and "|" not in lines[0] and ":" not in lines[0]:
        return Layout(paragraphs=lines)
    return _Reader(document.title.strip(), keys).read(lines)


def is_value(text: str) -> bool:
    """Whether this is a value and not a sentence, a question or empty."""
    found = text.split()
    if not 1 <= len(found) <= MAX_VALUE_WORDS or text.endswith(("?", "!", ":", "...", "…")):
        return False
    first = found[0].casefold().strip(",.")
    if first in ("i", "we", "you", "he", "she", "they", "it", "this", "that", "see", "please"):
        return False
    if text.endswith(",") or text.count("(") != text.count(")"):  # the line continues
        return False
    if re.fullmatch(r"[\d\s.,+%±n=-]+[\[(/][\d\s.,+%±n=/\[\]()-]+", text):
        return False  # several numbers in a cell
    if len(found) > 3 and _FINITE & {word.casefold() for word in found}:
        return False  # "Destination: Dewsbury is a film"
    empty = title_key(text) in _NO_VALUES
    return not empty and (len(found) < 7 or "." not in text[:-1])


def is_key(text: str, keys: Collection[str]) -> bool:
    """Whether this is a property and not the name of a speaker or of a part.

    It ends in a common word for a property, or occurs before a colon in several documents (`keys`).
    """
    found = text.split()
    small = [word.casefold() for word in found]
    if not 1 <= len(found) <= 4 or small[0] in NOT_KEYS or small[0] in _OPENS_SENTENCE:
        return False
    if any(word[:1].isupper() and not word.isupper() for word in found[1:]) or len(text) < 2:
        return False
    return small[-1] in ATTRIBUTES | NAMING_KEYS or " ".join(small) in keys


class _Reader:
    """Reads markdown, tables and key-value lines from top to bottom."""

    def __init__(self, title: str, keys: Collection[str]) -> None:
        self.title, self.keys = title, keys
        self.layout = Layout()
        self.subject = title if is_subject(title) else ""
        self._open: list[str] = []  # lines of the current paragraph
        self._record: list[tuple[str, str, str]] = []  # key, value, line
        self._rows: Counter[str] = Counter()  # in how many tables each row occurs

    def read(self, lines: Sequence[str]) -> Layout:
        at, fenced = 0, False
        while at < len(lines):
            line = lines[at]
            at += 1
            if _FENCE.match(line):
                fenced = not fenced
                self._end_paragraph()
            elif fenced:
                continue
            elif not line.strip():
                self._end_paragraph()
                self._end_record()
            elif match := _HEADING.match(line):
                self._head(plain(match["text"]))
            elif (
                at < len(lines) and re.match(r"(?:={3,}|-{3,})\s*$", lines[at]) and "|" not in line
            ):
                self._head(plain(line))
                at += 1
            elif "|" in line and (rows := _table_lines(lines, at - 1)):
                self._end_paragraph()
                self._end_record()
                self._table(lines[at - 1 : at - 1 + rows])
                at += rows - 1
            elif not _RULE.match(line):
                self._line(line)
        self._end_paragraph()
        self._end_record()
        self._drop_speakers()
        return self.layout

    def _head(self, text: str) -> None:
        self._end_paragraph()
        self._end_record()
        self.layout.headings.append(text)
        if is_subject(text):
            self.subject = text
        elif title_key(text) in GENERIC_HEADINGS:
            self.subject = self.title if is_subject(self.title) else ""
        else:
            self.subject = ""

    def _line(self, line: str) -> None:
        if len(line) > MAX_LINE:
            self._open.append(plain(line))
            return
        bullet = _BULLET.match(line)
        body = line[bullet.end() :] if bullet else line.strip()
        if match := _DEFINED.match(body):
            term, text = plain(match["term"]).rstrip(":"), plain(match["text"]).rstrip(".")
            key = is_key(term, self.keys) and match["term"].startswith("*")
            if key and is_value(text):
                self._end_paragraph()
                self._record.append((term, text, line))
                return
        if not _TIME.match(body) and (pairs := self._pairs(plain(body))):
            self._end_paragraph()
            self._record += [(key, value, line) for key, value in pairs]
            return
        if bullet:
            self._end_paragraph()
        self._open.append(plain(body))

    def _pairs(self, body: str) -> list[tuple[str, str]]:
        """All pairs in "Owner: Mira Holt; port: 8080", or none."""
        found = []
        for part in _SPLIT.split(body):
            match = _KEY_VALUE.match(part)
            if match is None or not is_key(match["key"], self.keys):
                return []
            if match["value"].rstrip().endswith(","):  # the line continues
                return []
            value = match["value"].strip().rstrip(".;").strip("\"“”'")
            if not is_value(value) or ": " in value:
                return []
            found.append((match["key"], value))
        return found

    def _end_paragraph(self) -> None:
        if self._open:
            self.layout.paragraphs.append(" ".join(self._open))
            self._open = []

    def _end_record(self) -> None:
        """Add the facts of adjacent key-value lines, about the thing that one of them may name."""
        record, self._record = self._record, []
        if not record:
            return
        key, value, _ = record[0]
        named = key.casefold() in NAMING_KEYS and len(record) > 1 and is_subject(value)
        subject, rest = (value, record[1:]) if named else (self.subject, record)
        if subject:
            self._add(subject, rest)

    def _add(self, subject: str, pairs: Sequence[tuple[str, str, str]]) -> None:
        for key, value, line in pairs:
            if title_key(value) != title_key(subject) and len(self.layout.facts) < MAX_FACTS:
                self.layout.facts.append(LayoutFact(subject, relation_of(key), value, line.strip()))

    def _table(self, rows: Sequence[str]) -> None:
        header = [plain(cell) for cell in _cells(rows[0])]
        body = [row for row in rows[1:] if not _SEPARATOR.match(row)]
        names = header[1:]
        good = [bool(name) and _is_column(name) for name in names]
        ruled = len(body) < len(rows) - 1
        if not ruled and not any(_is_property(name, self.keys) for name in header):
            return  # no header: the first line is an ordinary row
        shares = [_are_shares([_cells(row)[at + 1] for row in body]) for at in range(len(names))]
        if sum(shares) > 2:  # experiment results mean nothing without the table's caption
            good = [ok and not share for ok, share in zip(good, shares)]
        firsts = [plain(cells[0]) for row in body if (cells := _cells(row))]
        if not any(good) or len(set(firsts)) < len(firsts) or not 2 <= len(header) <= MAX_COLUMNS:
            return  # a first column with duplicates does not identify rows
        for name in {*firsts}:
            self._rows[name] += 1
        for row in body[:MAX_ROWS]:
            cells = [plain(cell) for cell in _cells(row)]
            if len(cells) != len(header) or not is_named(cells[0]):
                continue
            pairs = zip(names, cells[1:], good)
            self._add(
                cells[0], [(name, cell, row) for name, cell, ok in pairs if ok and is_value(cell)]
            )

    def _drop_speakers(self) -> None:
        """Drop keys with several values for one subject: they are speakers or lists.

        Also drop rows that occur in several tables, whose facts only the captions tell apart.
        """
        seen: dict[tuple[str, str], set[str]] = {}
        for fact in self.layout.facts:
            seen.setdefault((fact.subject, fact.relation), set()).add(fact.object)
        kept = [
            one
            for one in self.layout.facts
            if len(seen[one.subject, one.relation]) == 1 and self._rows[one.subject] < 2
        ]
        self.layout.facts = list(dict.fromkeys(kept))


def relation_of(key: str) -> str:
    """A key or column as a relation: "Default port" becomes "default port", "URL" stays."""
    words = [word if word.isupper() and len(word) > 1 else word.casefold() for word in key.split()]
    return " ".join(words)


def is_subject(text: str) -> bool:
    """Whether a title, heading or first cell names one thing: short, not a sentence or section."""
    words = text.split()
    if not 1 <= len(words) <= 6 or len(text) > 60 or text.endswith(("?", "!", ":", ".", "…")):
        return False
    key = title_key(text)
    first = words[0].casefold()
    if key in GENERIC_HEADINGS or not key or first in _OPENS_SENTENCE or date_mentions(text):
        return False
    if key.replace(" ", "").isdigit() or all(word in FUNCTION_WORDS for word in key.split()):
        return False
    capital = any(word[:1].isupper() for word in words[1:])
    named = capital or re.search(r"[\d_/().-]", text) is not None
    return named or len(words) == 1 or (len(words) <= 3 and first not in FUNCTION_WORDS)


def is_named(text: str) -> bool:
    """Whether a cell is a name also outside its table: a name or a code, not "Tue"."""
    days = {name[:size] for name in (*WEEKDAYS, *MONTHS) for size in (3, 4, len(name))}
    if (text[:1].isdigit() and " " in text) or ", " in text:  # "2 hops", or several things
        return False
    coded = re.search(r"[A-Za-z]", text) and re.search(r"\d|[a-z][_/.-][a-z]|[a-z]\(", text)
    words = text.split()
    capital = all(word[:1].isupper() for word in words if word not in FUNCTION_WORDS)
    return (
        len(text) > 1
        and is_subject(text)
        and words[0] not in days
        and (capital or coded is not None)
    )


def _is_column(name: str) -> bool:
    words = tokens(name)
    short = 1 <= len(words) <= 4 and len(name) > 1
    return short and not name.endswith("?") and not name[0].isdigit()


def _is_property(name: str, keys: Collection[str]) -> bool:
    words = name.casefold().split()
    return bool(words) and (words[-1] in ATTRIBUTES | NAMING_KEYS or name.casefold() in keys)


def _are_shares(cells: Sequence[str]) -> bool:
    return 2 * sum(_SHARE.match(cell) is not None for cell in cells) > len(cells)


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]


def _table_lines(lines: Sequence[str], start: int) -> int:
    """How many lines from here form a table: at least two rows with equally many cells."""
    width = len(_cells(lines[start]))
    if width < 2:
        return 0
    end = start
    while end < len(lines) and "|" in lines[end] and len(_cells(lines[end])) == width:
        end += 1
    ruled = end - start > 2 and _SEPARATOR.match(lines[start + 1]) is not None
    return end - start if ruled or end - start > 2 else 0


# ---------------------------------------------------------------------------------- manual pages


def _is_manual(lines: Sequence[str]) -> bool:
    heads = [line for line in lines[:400] if line[:1].isupper() and _MANUAL.match(line)]
    return "NAME" in heads[:2] and len(heads) > 1


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    name, body = "", list[str]()
    for line in lines:
        if line[:1].isupper() and _MANUAL.match(line):
            yield name, body
            name, body = line.strip(), []
        else:
            body.append(line)
    yield name, body


def _read_manual(title: str, lines: Sequence[str]) -> Layout:
    layout = Layout()
    subject = title
    for name, body in _sections(lines):
        if name:
            layout.headings.append(name)
        blocks = list(_blocks(body))
        if name == "NAME":
            said = next((match for _, text in blocks if (match := _PAGE_NAME.match(text))), None)
            if said:
                subject = subject or said["names"].split(",")[0]
                what = said["what"].rstrip(".")
                line = f"{said['names']} - {said['what']}"
                layout.facts.append(LayoutFact(subject, "purpose", what, line))
        elif name == "SEE ALSO" and subject:
            pages = re.findall(r"[\w.+:-]+ ?\(\d\w*\)", " ".join(text for _, text in blocks))
            found = dict.fromkeys(page.replace(" ", "") for page in pages)
            for page in found:
                if title_key(page) != title_key(subject) and len(found) == 1:
                    layout.facts.append(LayoutFact(subject, "see also", page, page))
        elif name not in ("SYNOPSIS", "EXAMPLE", "EXAMPLES", ""):
            _read_section(subject, blocks, layout)
    # "GNU coreutils 9.1      September 2022      LS(1)"
    footer = [part for part in lines[-1].strip().split("  ") if part.strip()]
    if subject and len(footer) == 3 and re.fullmatch(r"\s*[\w.+:-]+\(\w+\)", footer[2]):
        _read_footer(subject, footer[0].strip(), footer[1].strip(), layout)
    return layout


def _read_footer(subject: str, package: str, date: str, layout: Layout) -> None:
    line = f"{package}  {date}"
    versioned = re.fullmatch(
        r"(?P<name>.{0,60}?[^\d\s.])[ -]v?(?P<version>\d[\w.:+~-]{0,20})", package
    )
    if versioned:
        name = re.sub(r"(?i) (?:version|manual|release)$", "", versioned["name"])
        layout.facts.append(LayoutFact(subject, "package", name, line))
        # "Linux man-pages 6.03", "X Version 11": not the version of what the page describes.
        if not re.search(r"man-pages|[Vv]ersion$", versioned["name"]):
            layout.facts.append(LayoutFact(subject, "version", versioned["version"], line))
    # Without a version it may be a distributor: "Debian".
    if date_mentions(date) and not re.search(r"\d/\d", date):  # 10/07/2025 may be two days
        layout.facts.append(LayoutFact(subject, "page date", date, line))


def _read_section(subject: str, blocks: Sequence[tuple[int, str]], layout: Layout) -> None:
    options: dict[str, list[tuple[str, str]]] = {}
    for at, (indent, text) in enumerate(blocks):
        # "-c     with -lt: sort by" has the option and its description on one line.
        option, _, said = (part.strip() for part in text.partition("   "))
        if not said and at + 1 < len(blocks) and blocks[at + 1][0] > indent:
            said = blocks[at + 1][1]
        if len(option) <= MAX_OPTION and _OPTION.match(option):
            flags = [
                flag.split("=")[0].split("[")[0] for flag in re.findall(r"-{1,2}[\w?@#-]+", option)
            ]
            longest = max(flags, key=len)
            first = re.split(r"(?<=[a-z)]{2})\.(?:\s|$)", " ".join(said.split()))[0].rstrip(".;:, ")
            words = first.split()
            if subject and 2 <= len(words) <= 20 and ":" not in first:
                options.setdefault(longest, []).append((first, f"{option}  {said}"[:300]))
        elif text:
            layout.paragraphs.append(" ".join(text.split()))
    for flag, said_of in options.items():
        if len(said_of) == 1 and len(layout.facts) < MAX_FACTS:
            layout.facts.append(LayoutFact(subject, f"option {flag}", *said_of[0]))


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Consecutive lines of the same indent as one text, with their indent."""
    indent, held = -1, list[str]()
    for line in [*lines, ""]:
        here = len(line) - len(line.lstrip()) if line.strip() else -1
        if here != indent and held:
            yield indent, " ".join(held)
            held = []
        indent = here
        if here >= 0:
            held.append(line.strip())
