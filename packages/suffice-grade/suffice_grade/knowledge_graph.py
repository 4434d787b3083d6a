"""The knowledge graph: triples as edges, links that the texts leave implicit, and paths.

Claims are clustered, and different names for one thing are searched within a cluster, where similar
names usually mean the same. *Exactly* equivalent names are merged everywhere. *Contextually*
equivalent names (a short name that is unambiguous only in its cluster) get each other's edges of
that cluster, in both directions.
Only unambiguous edges are used in questions: `KnowledgeGraph.only` has the relations with exactly
one object.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.datasets.gold import draw_key
from suffice.errors import MissingExtraError
from suffice.protocols import Encoder, Progress
from suffice.text import title_key, tokens
from suffice_grade.claims import Page, PageIndex
from suffice_grade.open_relations import (
    KIN,
    LITERALS,
    PARSED,
    SAID,
    inverse,
    is_functional,
    kind_of,
)
from suffice_grade.relations import get_relation
from suffice_grade.sentence_patterns import alternative_names
from suffice_grade.stage_protocols import Claim, Equivalence, ReasoningPath, Triple
from suffice_grade.vocabulary import KINDS, ORGANISATIONS, RANKS, base_title, without_rank

T = TypeVar("T")
DIMENSIONS = 24
SAMPLE = 6_000  # claims used to fit a mixture, at most
SIZES = (2, 4, 8, 16, 32, 64)
MAX_NAME = 16  # words in a title that a name may begin
LIKELY = 0.1  # a claim belongs to every component with at least this probability
BLOCK = 8_192
HUB = 12  # a name at the end of triples from more documents than this is a hub
NO_SUBJECTS = LITERALS | {"thing"}  # kinds of objects that no question is about


def soft_clusters(
    texts: Sequence[str],
    encoder: Encoder,
    *,
    seed: int = 42,
    sizes: Sequence[int] = SIZES,
    progress: Progress | None = None,
) -> list[tuple[int, ...]]:
    """The clusters of each text, likeliest first, from a Gaussian mixture over the embeddings.

    BIC chooses the number of components. The mixture is fitted on a sample after a projection to a
    few dimensions, so time and memory are linear in the number of texts. A few texts form one
    cluster.
    """
    if len(texts) < 4 * min(sizes):
        return [(0,)] * len(texts)
    report = progress or (lambda what, done, total: None)
    blocks = []
    for start in range(0, len(texts), BLOCK):
        block = texts[start : start + BLOCK]
        blocks.append(np.asarray(encoder.encode(block), dtype=np.float32))
        report("encoding claims", start + len(block), len(texts))
    projection, mixture = _fit_mixture(np.concatenate(blocks), seed, sizes, report)
    if mixture is None:
        return [(0,)] * len(texts)
    found: list[tuple[int, ...]] = []
    for vectors in blocks:
        for row in mixture.predict_proba(projection.transform(vectors).astype(np.float64)):
            order = np.argsort(-row, kind="stable")
            found.append(tuple(int(at) for at in order if row[at] >= LIKELY) or (int(order[0]),))
    return found


def _fit_mixture(
    vectors: npt.NDArray[np.float32], seed: int, sizes: Sequence[int], report: Progress
) -> tuple[Any, Any]:
    """A projection, and the mixture with the lowest BIC; None if no size can be fitted."""
    try:
        from sklearn.decomposition import PCA
        from sklearn.mixture import GaussianMixture
    except ImportError as error:
        raise MissingExtraError("clustering claims", extra="fit") from error

    chosen = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    dimensions = min(DIMENSIONS, len(chosen) // 2, vectors.shape[1])
    projection = PCA(dimensions, random_state=seed, svd_solver="randomized")
    sample = projection.fit_transform(vectors[chosen]).astype(np.float64)
    best, least = None, np.inf
    tried = [size for size in sizes if size * 4 <= len(sample)]
    for at, size in enumerate(tried):
        mixture = GaussianMixture(
            size, covariance_type="diag", random_state=seed, max_iter=40, reg_covar=1e-5
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forty iterations are enough to choose a size
            mixture.fit(sample)
        bic = mixture.bic(sample)
        report("fitting clusters", at + 1, len(tried))
        if bic >= least:
            break
        best, least = mixture, bic
    return projection, best


# ------------------------------------------------------------------------------------- equivalence

_SMALL = frozenset("of the de von van der and in la le".split())
_SMALL |= {word.casefold().strip(".") for word in RANKS}


class RuleEquivalences:
    """Equivalent names by rules: same words except ranks, a name on the page, or a short form."""

    def __init__(self, pages: PageIndex) -> None:
        self.pages = pages
        self._same_words: dict[frozenset[str], set[str]] = defaultdict(set)
        self._opens: dict[str, set[str]] = defaultdict(set)
        for title in pages.by_title:
            words = title.split()
            # A parenthesis in a person's title means that others have the same name.
            if base_title(title) == title or pages.kind(title) != "person":
                # Ranks and "in" tell works apart: "The Saint in New York" is not New York.
                person = pages.kind(title) in ("person", "")
                own = frozenset(tokens(base_title(title))) - {"of", "the", "and"}
                self._same_words[_content(title) if person else own].add(title)
            # By whole words: "Maria Theresa of Austria" is not "Maria Theresa of Austria-Este".
            for length in range(2, min(len(words), MAX_NAME)):
                self._opens[title_key(" ".join(words[:length]))].add(title)

    def equivalences(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> list[Equivalence]:
        here = {one.subject for one in triples} | {one.subject for one in claims if one.subject}
        stated = _stated_names(claims)
        found = []
        for triple in triples:
            name = triple.object
            if name in self.pages.by_title or get_relation(triple.relation).object not in (
                "person",
                "",
            ):
                continue
            alike = self._same_words.get(_content(name), set())
            # "Reginald I of Guelders, Count of Zutphen": numbers and places identify one person.
            head = name.split(", ")[0]
            if (
                not alike
                and head != name
                and re.search(r"\w (?:of|von|[IVX]+|the [A-Z]\w+)\b", head)
            ):
                alike = self._same_words.get(_content(head), set())
            alike = {title for title in alike if not _ranks_differ(name, title)}
            # "Walter IV of Brienne" is the Count of Brienne everywhere. A name of two plain words
            # identifies a person only within a cluster.
            anywhere = alike if len(_content(name)) > 2 else set()
            exact = ((alike | stated.get(title_key(name), set())) & here) | anywhere
            if len(exact) == 1 and len(_content(name)) > 1:
                found.append(Equivalence((exact.pop(), name), always=True, cluster=cluster))
            elif not exact:
                short = self._opens.get(title_key(without_rank(name)), set())
                if len(short) == 1 and short <= here:
                    (title,) = short
                    elsewhere = _BARE_RULER.fullmatch(name) and not _share_realm(
                        title, triple.subject
                    )
                    if self.pages.kind(title) == "person" and not elsewhere:
                        found.append(Equivalence((title, name), always=False, cluster=cluster))
        # A name that refers to a title has no other meaning.
        settled = {name for one in found for name in one.names}
        others = self._open_names(cluster, triples, claims)
        found += [one for one in others if not settled & set(one.names[1:])]
        return list(dict.fromkeys(found))

    def _open_names(
        self, cluster: int, triples: Sequence[Triple], claims: Sequence[Claim]
    ) -> Iterator[Equivalence]:
        """Names in open triples: "Hasaris" is Hasaris Labs here, H5N1 is bird flu everywhere."""
        names = _nodes(triples)
        spelled = _spelled_out(claims)
        # A name of signs alone would equal every name that is not spelled out.
        keys = {name: key for name in names if (key := title_key(name))}
        by_key: dict[str, list[str]] = defaultdict(list)
        longer: dict[str, list[str]] = defaultdict(list)
        aliases: dict[str, set[str]] = defaultdict(set)
        for name, key in keys.items():
            by_key[" ".join(_singular(word) for word in key.split())].append(name)
            for short in _short_forms(name):
                longer[short].append(name)
            if alias := _ALIAS.search(name):
                aliases[title_key(alias["short"])].add(name)
        for same in by_key.values():
            titles = [name for name in same if name in self.pages.by_title]
            if len(same) > 1 and len(titles) < 2:
                best = max(same, key=lambda name: (name in titles, names[name], name))
                rest = sorted(name for name in same if name != best)
                yield Equivalence((best, *rest), always=True, cluster=cluster)
        for name, key in keys.items():
            whole = aliases.get(" ".join(key.split()[:1] if _is_alias_of(key) else key.split()), ())
            full = {*whole, *(one for one in by_key.get(spelled.get(name, ""), ()))} - {name}
            if len(full) == 1:
                yield Equivalence((full.pop(), name), always=True, cluster=cluster)
            elif name not in self.pages.by_title and len(longer.get(key, ())) == 1:
                yield Equivalence((longer[key][0], name), always=False, cluster=cluster)


_ALIAS = re.compile(r"\((?P<short>[A-Z][A-Z0-9-]{1,9})\)$")
_SPELLED = re.compile(
    r"(?P<name>[A-Z][\w-]+(?: (?:(?:of|and|the|for) ){0,2}[A-Z][\w-]+){1,6}) "
    r"\((?P<short>[A-Z]{2,8})\)"
)
_PLACE_RELATIONS = re.compile(r"(?:^| )(?:place|in|at|to|from|country|headquarters)$")
_GENERIC_NOUNS = frozenset("virus disease protocol agency company service team project".split())


def _nodes(triples: Sequence[Triple]) -> Counter[str]:
    """The names at the ends of open triples, without values, claims and possible places."""
    found: Counter[str] = Counter()
    places = set()
    for one in triples:
        if not one.phrase or one.relation == SAID:
            continue
        found[one.subject] += 1
        if one.object_kind not in LITERALS:
            found[one.object] += 1
        if one.object_kind == "place" or _PLACE_RELATIONS.search(one.relation):
            places.add(one.object)
    return Counter({name: count for name, count in found.items() if name not in places})


def _spelled_out(claims: Sequence[Claim]) -> dict[str, str]:
    """Abbreviations that a claim spells out -> the name's key: "Federal Trade Commission (FTC)"."""
    found: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        if "(" in claim.sentence:
            for match in _SPELLED.finditer(claim.sentence):
                words = [word for word in match["name"].split() if word[0].isupper()]
                words = words[-len(match["short"]) :]
                if "".join(word[0] for word in words) == match["short"]:
                    name = match["name"][match["name"].index(words[0]) :]
                    key = " ".join(_singular(word) for word in title_key(name).split())
                    found[match["short"]].add(key)
    return {short: keys.pop() for short, keys in found.items() if len(keys) == 1}


def _is_alias_of(key: str) -> bool:
    words = key.split()
    return len(words) == 2 and words[1] in _GENERIC_NOUNS


def _short_forms(name: str) -> Iterator[str]:
    """Short forms used later in a text: the surname, a company without its last word, a noun."""
    words = title_key(name).split()
    kind = kind_of(name)
    if kind == "person" and len(words) in (2, 3):
        yield words[-1]
    elif kind in ("organisation", "") and len(words) == 2 and len(words[0]) > 3:
        if words[-1] in ORGANISATIONS:
            yield words[0]
    elif kind == "thing":
        head = re.split(r" (?:in|on|at|of|for|from|with|by) ", name, maxsplit=1)[0]
        if head != name and " " in head:
            yield title_key(head)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _stated_names(claims: Sequence[Claim]) -> dict[str, set[str]]:
    """Alternative names that pages give their subject -> the subjects."""
    stated: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        if claim.subject and claim.claim_id.endswith("#0"):
            for name in alternative_names(claim.text):
                stated[title_key(name)].add(claim.subject)
    return stated


def _ranks_differ(name: str, other: str) -> bool:
    """Whether the ranks differ: a princess is not the duchess of the same name and place."""
    mine, theirs = (RANKS.keys() & set(re.split(r"[ ,]+", one)) for one in (name, other))
    return bool(mine and theirs and not mine & theirs)


# "Constantine I of Greece was succeeded by George II": not by George II, Prince of Waldeck.
_BARE_RULER = re.compile(r"(?:[A-Z]\w+ )?[A-Z][\w’'-]+ [IVX]+")


def _share_realm(name: str, other: str) -> bool:
    mine, theirs = (_content(one) - _RANK_WORDS for one in (name, other))
    return bool({one for one in mine & theirs if not re.fullmatch(r"[ivx]+", one)})


def _content(name: str) -> frozenset[str]:
    return frozenset(tokens(base_title(name))) - _SMALL


_RANK_WORDS = frozenset(rank.casefold() for rank in RANKS)


def merge_equivalent_names(
    triples: Iterable[Triple],
    equivalences: Iterable[Equivalence],
    clusters: Mapping[str, Sequence[int]],
) -> list[Triple]:
    """The triples with equivalent names merged, plus copies for contextual equivalences.

    Names that are equivalent in a cluster get each other's edges of that cluster, inbound and
    outbound, as copies with the link "context". A name with two candidate names gets neither.
    """
    always: dict[str, set[str]] = defaultdict(set)
    within: dict[tuple[int, str], set[str]] = defaultdict(set)
    groups: list[Equivalence] = []
    for one in equivalences:
        if not one.always:
            groups.append(one)
        for name in one.names[1:]:
            (always[name] if one.always else within[one.cluster, name]).add(one.names[0])
    merged = {name: next(iter(chosen)) for name, chosen in always.items() if len(chosen) == 1}
    mirrors: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
    for one in groups:
        clear = [name for name in one.names[1:] if len(within[one.cluster, name]) == 1]
        same = dict.fromkeys(merged.get(name, name) for name in (one.names[0], *clear))
        for name in same:
            mirrors[one.cluster, name] |= {other: None for other in same if other != name}
    found: dict[Triple, None] = {}
    for triple in triples:
        ends = tuple(merged.get(name, name) for name in (triple.subject, triple.object))
        moved = ends != (triple.subject, triple.object)
        link = "exact" if moved else triple.link
        fact = replace(triple, subject=ends[0], object=ends[1], link=link)
        found.setdefault(fact)
        for cluster in clusters.get(triple.claim_id, ()):
            for subject in (fact.subject, *mirrors.get((cluster, fact.subject), ())):
                for name in (fact.object, *mirrors.get((cluster, fact.object), ())):
                    if (subject, name) != ends and subject != name:
                        found.setdefault(
                            replace(fact, subject=subject, object=name, link="context")
                        )
    return list(found)


# ------------------------------------------------------------------------------------------- graph


class KnowledgeGraph:
    """Edges by subject and relation, and which of them have no alternative.

    Of two documents with the same fact, the one with the subject as its title is preferred.
    """

    def __init__(self, triples: Iterable[Triple], titles: Mapping[str, str] | None = None) -> None:
        self._titles = titles or {}
        self._edges: dict[str, dict[str, list[Triple]]] = defaultdict(lambda: defaultdict(list))
        documents: dict[str, set[str]] = defaultdict(set)
        for triple in dict.fromkeys(triples):
            self._edges[triple.subject][triple.relation].append(triple)
            for name in (triple.subject, triple.object):
                documents[name].add(triple.doc_id)
        self._hubs = frozenset(name for name, ids in documents.items() if len(ids) > HUB)

    def __len__(self) -> int:
        return sum(len(ends) for relations in self._edges.values() for ends in relations.values())

    @property
    def subjects(self) -> list[str]:
        return list(self._edges)

    def edges(self, subject: str, relation: str) -> list[Triple]:
        return list(self._edges.get(subject, {}).get(relation, ()))

    def of_subject(self, subject: str) -> list[Triple]:
        """All edges of this subject."""
        return [one for ends in self._edges.get(subject, {}).values() for one in ends]

    def may_lead_on(self, edge: Triple) -> bool:
        """Not if it leads to a hub by one of many: the country where a game was "released".

        Nor if a parse read it on the page of something else, which tells it in passing: "When did
        the country where X was born repeat the feat?" would end a chain of everybody born there.
        """
        page = self._titles.get(edge.doc_id, "")
        if edge.relation.startswith(PARSED) and page not in ("", edge.subject):
            return False
        functional = not edge.phrase or is_functional(edge.relation, edge.object_kind)
        return functional or edge.object not in self._hubs

    def only(self, subject: str) -> dict[str, Triple]:
        """Relation -> the edge of this subject, for relations with exactly one object.

        A subject of many documents has more objects than the corpus states, unless the relation
        allows only one.
        """
        fullest = {name: self._fullest(ends) for name, ends in self._edges.get(subject, {}).items()}
        hub = subject in self._hubs
        return {
            relation: edge
            for relation, edge in fullest.items()
            if edge is not None
            and not (
                edge.phrase
                and (hub or relation in KIN)
                and not is_functional(relation, edge.object_kind)
            )
        }

    def _fullest(self, edges: Sequence[Triple]) -> Triple | None:
        """The edge with the most specific object, "2 June 1904" rather than "1904".

        None if they contradict. A mirrored edge fills a gap and never contradicts: neither the edge
        it mirrors nor one that the text states for this name. It is preferred only if its name is
        more specific ("George Stewart, 9th Seigneur d'Aubigny"). Open relations do not contradict
        those found by a pattern.
        """
        stated = [edge for edge in edges if edge.link != "context"]
        if stated:
            said = {edge.claim_id: set(tokens(edge.object)) for edge in stated}
            stated += [
                edge
                for edge in edges
                if edge.link == "context"
                and edge.claim_id in said
                and said[edge.claim_id] < set(tokens(edge.object))
            ]
        else:  # a fact may be mirrored at both ends; the first copy keeps the text's object
            stated = list({edge.claim_id: edge for edge in reversed(edges)}.values())
        edges = [edge for edge in stated if not edge.phrase] or stated
        if any(edge.several for edge in edges):
            return None
        best = max(
            edges,
            key=lambda one: (
                len(tokens(one.object)),
                one.link == "",
                self._titles.get(one.doc_id) == one.subject,
                one.doc_id,
                one.claim_id,
            ),
        )
        words = set(tokens(best.object))
        parts = [set(tokens(edge.object)) for edge in edges]
        return best if all(part and part <= words for part in parts) else None


def build_graph(triples: Iterable[Triple], pages: PageIndex) -> KnowledgeGraph:
    """The graph of the plausible triples.

    Marriages and siblings also get the reverse edge, and so do verbs: "is led by" and "leads".
    """
    kept = list(triples)
    years: dict[tuple[str, str], int] = {}
    for one in kept:
        match = re.search(r"\b\d{3,4}$|\b[12]\d{3}\b", one.object)
        if match and get_relation(one.relation).object == "date":
            years[one.subject, one.relation] = int(match.group())
    stated = {(one.subject, one.object) for one in kept}
    possible = [one for one in kept if _is_possible(one, years, pages, stated)]
    kept = _without_namesakes(possible, set(kept) - set(possible))
    return KnowledgeGraph([*kept, *_led_back(kept, pages)], pages.title_of)


def _without_namesakes(triples: Sequence[Triple], impossible: Collection[Triple]) -> list[Triple]:
    """The triples without those that a short name has only as the mirror of an impossible name."""
    facts = {(one.claim_id, one.relation) for one in impossible if one.link == "context"}
    short = {
        one.object for one in triples if not one.link and (one.claim_id, one.relation) in facts
    }
    return [one for one in triples if one.link != "context" or one.subject not in short]


def _led_back(triples: Iterable[Triple], pages: PageIndex) -> Iterator[Triple]:
    """The edges from object to subject: a wife's husband, and the inverse of an open relation."""
    for one in triples:
        relation = get_relation(one.relation).back
        back = relation if one.object in pages.by_title else ""
        if one.phrase and one.object_kind not in NO_SUBJECTS:
            back = back or inverse(one.relation)
        if back and not one.several:
            kind = kind_of(one.subject, pages.kind(one.subject))
            yield replace(
                one, subject=one.object, relation=back, object=one.subject, object_kind=kind
            )


def _is_possible(
    triple: Triple,
    years: Mapping[tuple[str, str], int],
    pages: PageIndex,
    stated: Collection[tuple[str, str]],
) -> bool:
    """Whether dates and professions of both ends allow the triple; if not, it is a namesake.

    If dates are missing, someone otherwise related to the other end is not a namesake.
    """
    page = pages.by_title.get(triple.object)
    if page is None or page.kind != "person":
        return True
    relation = get_relation(triple.relation)
    # "American motion picture pioneer" names no trade that another person would have.
    if relation.trades and not re.search(relation.trades, page.defined) and _has_trade(page):
        return False
    if relation.years is None:
        return True
    date, least, most = relation.years
    first = years.get((triple.subject, date))
    if first is None and date == "birth date":
        first = _title_year(triple.subject)
    second = years.get((triple.object, "birth date")) or _title_year(triple.object)
    if first is None or second is None:
        if _title_year(triple.object) is not None:
            return False  # others have the name, and nothing says that this one is meant
        # Two plain words can be anyone's name; ranks, places and numbers identify one person.
        known = re.search(r",| (?:of|the|mac|ibn|bin) |[IVX]{2,}|\d", triple.object) is not None
        known = known or " " not in triple.object
        known = (
            known or base_title(triple.object).split()[-1] == base_title(triple.subject).split()[-1]
        )
        return relation.trades != "" or known or (triple.object, triple.subject) in stated
    return least <= first - second <= most


def _title_year(title: str) -> int | None:
    """The first year in a title's parenthesis: 1762 in "Maria Theresa (1762–1770)"."""
    match = re.search(r"\b[12]?\d{3}\b", title[len(base_title(title)) :])
    return int(match.group()) if match else None


def _has_trade(page: Page) -> bool:
    return any(KINDS.get(word) == "person" for word in tokens(page.defined))


# ------------------------------------------------------------------------------------------- paths

MIN_HOPS, MAX_HOPS = 2, 5


def shortest_paths(
    graph: KnowledgeGraph, *, longest: int = MAX_HOPS, progress: Progress | None = None
) -> list[ReasoningPath]:
    """One shortest path for each pair of ends that are two to `longest` facts apart.

    Only unambiguous edges are followed, so every step has one answer, and each fact comes from a
    different document.
    """
    only = {
        # Known relations first: of two paths between the same ends, the more reliable one is kept.
        # And "the country where Ohio is located" before "the place where".
        subject: tuple(
            sorted(
                filter(graph.may_lead_on, graph.only(subject).values()),
                key=lambda edge: (bool(edge.phrase), edge.relation == "located in"),
            )
        )
        for subject in graph.subjects
    }
    found: list[ReasoningPath] = []
    for done, start in enumerate(only, 1):
        found += _paths_from(start, only, longest)
        if progress is not None and (done % 1000 == 0 or done == len(only)):
            progress("walking paths", done, len(only))
    return found


def _paths_from(
    start: str, only: Mapping[str, tuple[Triple, ...]], longest: int
) -> Iterator[ReasoningPath]:
    """Breadth-first search; a name reached by a shorter path is not visited again."""
    reached = {start}
    frontier: list[tuple[Triple, ...]] = [()]
    for length in range(1, longest + 1):
        further: list[tuple[Triple, ...]] = []
        for path in frontier:
            doc_ids = {one.doc_id for one in path}
            for triple in only.get(path[-1].object if path else start, ()):
                # Paths may end at dates and countries; the relation tells a birth from a death.
                is_name = triple.object in only
                end = triple.object if is_name else f"{triple.relation}\0{triple.object}"
                if triple.doc_id not in doc_ids and end not in reached:
                    reached.add(end)
                    further.append((*path, triple))
        frontier = further
        if length >= MIN_HOPS:
            yield from map(ReasoningPath, frontier)


def sample_paths(
    paths: Iterable[ReasoningPath],
    per_hop: int,
    *,
    seed: int = 42,
    can_write: Callable[[ReasoningPath], bool] | None = None,
) -> list[ReasoningPath]:
    """At most `per_hop` paths of each length, drawn evenly over their chains of relations.

    Paths whose first and last facts are new come before those that repeat them. Chains of known
    relations and chains with open ones take turns: most open chains are unique and would fill the
    quota. `can_write` excludes paths that give no question.
    """
    groups: dict[tuple[str, ...], list[ReasoningPath]] = defaultdict(list)
    for path in paths:
        groups[tuple(one.relation for one in path.triples)].append(path)
    by_length: dict[int, tuple[list[list[ReasoningPath]], ...]] = defaultdict(lambda: ([], []))
    for relations, members in sorted(groups.items()):
        order = seeded_order(members, lambda path: repr(path.ends), seed)
        is_open = any(one.phrase for one in members[0].triples)
        by_length[len(relations)][is_open].append(order)
    chosen: list[ReasoningPath] = []
    for _, lanes in sorted(by_length.items()):
        fitting = (filter(can_write, _varied(_in_turn(orders))) for orders in lanes)
        chosen += islice(_in_turn(fitting), per_hop)
    return chosen


def _varied(paths: Iterable[ReasoningPath]) -> list[ReasoningPath]:
    """The paths by how often earlier ones begin with the same fact or end at it."""
    firsts: Counter[str] = Counter()
    lasts: Counter[str] = Counter()
    repeats = []
    for path in paths:
        first, last = path.triples[0].claim_id, path.triples[-1].claim_id
        repeats.append((firsts[first] + lasts[last], path))
        firsts[first] += 1
        lasts[last] += 1
    return [path for _, path in sorted(repeats, key=lambda one: one[0])]


def _in_turn(orders: Iterable[Iterable[T]]) -> Iterator[T]:
    """One item from each, then the next from each."""
    rounds = chain.from_iterable(zip_longest(*orders))
    return (one for one in rounds if one is not None)


def seeded_order(items: Sequence[T], key: Callable[[T], str], seed: int) -> list[T]:
    """The items in a random order that depends only on the seed and each item's key."""
    return sorted(items, key=lambda item: draw_key(seed, key(item)))
