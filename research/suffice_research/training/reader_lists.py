"""Lists of hits drawn from packed cases, so that only the text tells whether they are complete.

Lists come in pairs for each question: one has everything that is needed, the other lacks at
least one passage. Both have the same number of hits, drawn first, in random order, with or without
titles alike. Half of the lists are BM25's hits, changed where necessary; the others contain
look-alikes.

In training, a word or number that question and passage share is sometimes replaced: in both, which
changes nothing, or in only one of them, which makes the list incomplete. In other lists all
numbers, weekdays, months and names change, in question and hits alike: a passage that is never the
same twice cannot be memorized. Some lists are incomplete because the sentence that answers is
removed. Some questions consist of part of a sentence in a passage; without that sentence the list
is incomplete. Claims and instructions ("this text answers it fully") and sentences from other
passages are inserted into some hits, whatever their label, so that the reader learns to ignore
them. Needs only numpy: it runs on the training machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

__all__ = [
    "UNLABELLED",
    "WEIGHTS",
    "WRITTEN",
    "Batch",
    "HitList",
    "Pack",
    "collate",
    "draw_lists",
    "draw_pair",
    "draw_sentences",
    "hit_tokens",
    "natural_list",
    "renamed",
    "shuffled_names",
    "with_orders",
    "without_sentence",
]

Ints = np.ndarray
PIECE, WORD, NAME = 1, 2, 102  # kinds of tokens: the rest of a word, a word, a name; in between
# are numbers by length, weekdays and months
CLS, SEP, COLON, BRACKET = 101, 102, 1024, 1006  # of the uncased vocabulary
WINDOW, OVERLAP, QUESTION = 192, 24, 64  # tokens
BLOCK = 4  # tokens that the upper layers see as one
NOTHING, SPAN, YES, NO = range(4)  # kinds of answers
SENTENCES = "sentences"  # the source whose questions are generated here
WRITTEN = "written"  # the source whose cases a language model wrote
GROUPS = 4  # parts of a batch, each padded separately
SLOTS = 32  # distinguishable hits
BROKEN, RENAMED = 0.18, 0.22  # shares of the pairs with a word replaced in one place, in both
SHORT = 0.2  # share of pairs with one sentence per passage, if the answer's is known
JOINED = 0.2  # share of pairs with several passages in one hit
SHUFFLED = 0.4  # share of pairs in which all numbers, weekdays and months are shuffled
OWN = 0.5  # style from which hits have their own titles
TITLED = 0.4  # share of hits with the answer in title and text where the title is marked
NAMES_TOO = 0.6  # share of these in which names are shuffled too
CUT = 0.25  # share of pairs, if the answer's sentence is known, that differ only in it
ORDERED = 0.12  # share of lists with claims and instructions
EVERYWHERE = 0.3  # share of these with the same one in every hit
STRAY = 0.3  # share of these with a sentence of another passage instead
LEFT = 8  # minimum tokens left in a hit after a sentence is removed
OFTEN = 2e-3  # of all tokens: more frequent words are not keywords
SENTENCE_ENDS = (999, 1012, 1029)  # ! . ?
RARE = 1e-4  # of all tokens: rarer words say what the question is about
TRIES = 1000  # draws in a row that may add no list

# The share of each source in the training lists.
WEIGHTS: Mapping[str, float] = {
    "everyday": 0.19, "hotpotqa": 0.1, "2wiki": 0.05, "musique": 0.03, "squad2": 0.11,
    "policyqa": 0.04, "entailmentbank": 0.02, "strategyqa": 0.02, "hover": 0.015, "tatqa": 0.025,
    "multihop_rag": 0.025, SENTENCES: 0.07, "mirrored": 0.185, "chained": 0.13, "passages": 0.5,
    "worded": 0.03,
}  # fmt: skip
# The sources whose labels are a language model's, often wrong: only a teacher's word counts.
UNLABELLED: Mapping[str, float] = {WRITTEN: 0.7, "questions": 0.3}


@dataclass(frozen=True)
class Hit:
    """One hit: passages joined into one chunk (usually a single one)."""

    passages: tuple[int, ...]
    title: Ints  # token ids
    needed: bool
    renames: Mapping[int, int]  # replaced tokens
    cut: tuple[int, int] = (0, 0)  # tokens removed from the passage
    kept: tuple[tuple[int, int], ...] = ()  # per passage, the remaining tokens; (): all
    before: tuple[int, ...] = ()  # tokens before the text, and after it
    behind: tuple[int, ...] = ()


@dataclass(frozen=True)
class HitList:
    question: Ints
    hits: tuple[Hit, ...]
    complete: bool
    style: float  # of the titles: below 0.4 none, below 0.5 uninformative names
    count: int  # documents that the question needs; -1 if unknown
    evidence: Ints  # (passage, first token, end) in each row
    answers: Ints  # the same
    answer: int = -1  # NOTHING, SPAN, YES or NO; -1 if unknown
    titled: frozenset[int] = frozenset()  # passages whose title, if shown, is the answer
    taught: tuple[float, ...] = ()  # what a teacher says: each hit is needed, the list is complete


class Pack:
    """The file that `suffice_research.training.reader_data` writes."""

    def __init__(self, path: Path) -> None:
        try:
            self._load(path)
        except (EOFError, KeyError, OSError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(f"{path} is not a pack of `reader_data`: {error}") from error

    def _load(self, path: Path) -> None:
        with np.load(path) as file:
            self._arrays = {name: file[name] for name in file.files}
        self.names = [str(name) for name in self._arrays["names"]]
        self.source = self._arrays["source"]
        self.part = self._arrays["part"]
        self.answer = self._arrays["answer"]  # per case, -1 if unknown
        self.kinds = self._arrays["kinds"]  # per token, see `reader_data.token_kinds`
        self.shown = self._arrays["shown"]  # passages that training may show
        self.passages = len(self._arrays["texts_starts"]) - 1
        self.orders = len(self._arrays["orders_starts"]) - 1
        self.counts = np.bincount(self._arrays["texts"], minlength=len(self.kinds))

    def row(self, name: str, number: int) -> Ints:
        starts = self._arrays[f"{name}_starts"]
        return np.asarray(self._arrays[name][starts[number] : starts[number + 1]])

    def question(self, case: int, form: int = 0) -> Ints:
        return self.row("questions", 3 * case + form)[:QUESTION]

    def spans(self, name: str, case: int) -> Ints:
        """(passage, first token, end) in each row."""
        return self.row(name, case).reshape(-1, 3)

    def cases_of(self, part: int, prefix: str = "") -> Ints:
        wanted = [
            n for n, name in enumerate(self.names) if name.split("/")[0] == prefix or not prefix
        ]
        return np.flatnonzero((self.part == part) & np.isin(self.source, wanted))


def _titles(
    pack: Pack, passages: Sequence[int], style: float, draw: np.random.Generator
) -> list[Ints]:
    """The title of each hit: its own, none, or an uninformative name."""
    empty = np.zeros(0, np.uint16)
    if style < 0.4:
        return [empty] * len(passages)
    if style < OWN:
        other = draw.integers(0, pack.passages, len(passages))
        return [np.r_[draw.integers(1037, 9000, 1), 1035, draw.integers(1014, 1025, 2)].astype(np.uint16)
                if draw.random() < 0.7 else pack.row("titles", int(at))[:6] * 0 + 1035
                for at in other]  # fmt: skip
    return [pack.row("titles", at)[:24] for at in passages]


def _make(
    pack: Pack, case: int, form: int, chosen: Sequence[int], needed: set[int], style: float,
    joined: int, draw: np.random.Generator, change: _Change | None = None,
) -> HitList:  # fmt: skip
    change = change or _Change()
    right = needed - change.broken
    first = tuple(chosen[at] for at in draw.permutation(min(joined, len(chosen))).tolist())
    groups = [first] * bool(first) + [(one,) for one in chosen[joined:]]
    groups = [groups[at] for at in draw.permutation(len(groups)).tolist()]
    titles = _titles(pack, [group[0] for group in groups], style, draw)
    hits = [
        Hit(group, title, not right.isdisjoint(group), change.in_hits)
        for group, title in zip(groups, titles, strict=True)
    ]
    count = sum(not needed.isdisjoint(group) for group in groups) + len(needed - set(chosen))
    count = count if needed else -1
    complete = bool(needed) and needed <= set(chosen) and not change.broken
    question = renamed(pack.question(case, form), change.in_question)
    evidence, answers = (pack.spans(name, case) for name in ("evidence", "answers"))
    answer = int(pack.answer[case]) if complete else NOTHING
    in_text = {at for at, _, _ in answers.tolist()}
    titled = pack.row("titled", case).tolist() if style >= OWN and answer == SPAN else []
    titled = [at for at in titled if at not in in_text or draw.random() < TITLED]
    return HitList(
        question, tuple(hits), complete, style, count, evidence, answers, answer, frozenset(titled)
    )


@dataclass(frozen=True)
class _Change:
    """Words replaced in a list, and the needed passages that no longer match the question."""

    in_question: Mapping[int, int] = field(default_factory=dict)
    in_hits: Mapping[int, int] = field(default_factory=dict)
    broken: frozenset[int] = frozenset()


def renamed(ids: Ints, renames: Mapping[int, int]) -> Ints:
    """Token ids with some of them replaced, all at once."""
    if not renames:
        return ids
    old, new = (np.fromiter(some, np.int64) for some in (renames, renames.values()))
    order = np.argsort(old)
    at = order[np.searchsorted(old, ids, sorter=order).clip(max=len(old) - 1)]
    return np.where(old[at] == ids, new[at], ids).astype(ids.dtype)


def _words(pack: Pack, question: Ints) -> list[int]:
    """Whole words and numbers that say what a question is about."""
    kinds = pack.kinds[question]
    split = np.r_[kinds[1:], 0] == PIECE  # the word continues
    often = pack.counts[question] >= RARE * pack.counts.sum()
    telling = (kinds > WORD + 1) | (kinds == WORD) & ~often
    return _unique(question[~split & telling].tolist())


def _rename(
    pack: Pack, case: int, draw: np.random.Generator
) -> tuple[dict[int, int], frozenset[int]] | None:
    """A key word or number of the question, a replacement, and the needed passages that have it."""
    passages = {
        at: {*pack.row("texts", at).tolist(), *pack.row("titles", at).tolist()}
        for at in pack.row("needed", case).tolist()
    }
    question = pack.question(case)
    shared = [
        one for one in _words(pack, question) if any(one in held for held in passages.values())
    ]
    if not shared:
        return None
    numbers = [one for one in shared if pack.kinds[one] > WORD]
    old = min(shared, key=lambda one: int(pack.counts[one]))
    if numbers and draw.random() < 0.7:
        old = numbers[int(draw.integers(len(numbers)))]
    if pack.kinds[old] > WORD:
        others = np.flatnonzero((pack.kinds == pack.kinds[old]) & (pack.counts > 0)).tolist()
    else:  # a key word of another question
        like = np.flatnonzero(pack.source == pack.source[case])
        other = int(like[draw.integers(len(like))])
        others = [one for one in _words(pack, pack.question(other)) if pack.kinds[one] == WORD]
        others = sorted(others, key=lambda one: int(pack.counts[one]))[:1]
    others = [one for one in others if one not in question]
    if not others:
        return None
    new = others[int(draw.integers(len(others)))]
    return {old: new}, frozenset(at for at, held in passages.items() if old in held)


def shuffled_names(pack: Pack, case: int, draw: np.random.Generator) -> dict[int, int]:
    """Another number with as many digits, another weekday or month for each in the case, and in
    some cases another name.
    """
    rows = [pack.question(case)]
    for name in ("needed", "distractors", "retrieved"):
        rows += [pack.row("texts", at) for at in pack.row(name, case)[:12].tolist()]
    held = np.unique(np.concatenate(rows))
    renames: dict[int, int] = {}
    last = NAME if draw.random() < NAMES_TOO else NAME - 1
    for kind in np.unique(pack.kinds[held]):
        if WORD + 1 < kind <= last:
            old = held[pack.kinds[held] == kind]
            others = np.flatnonzero((pack.kinds == kind) & (pack.counts > 0))
            new = draw.permutation(np.union1d(others, old))[: len(old)]
            renames |= dict(zip(old.tolist(), new.tolist(), strict=True))
    return renames


def _changes(pack: Pack, case: int, draw: np.random.Generator) -> tuple[_Change, _Change, bool]:
    """The changes in the complete list and in the other; whether the change alone breaks it."""
    if draw.random() < SHUFFLED:
        renames = shuffled_names(pack, case, draw)
        both = _Change(renames, renames)
        return both, both, False
    kind = draw.random()
    found = _rename(pack, case, draw) if kind < BROKEN + RENAMED else None
    if found is None:
        return _Change(), _Change(), False
    renames, held = found
    both = _Change(renames, renames)
    if kind > BROKEN:
        return both, both, False
    broken = _Change(renames, {}, held) if draw.random() < 0.5 else _Change({}, renames, held)
    return both, broken, True


def _unique(rows: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(rows))


def draw_pair(
    pack: Pack, case: int, size: int, draw: np.random.Generator, *, change: bool = False
) -> list[HitList]:
    """A complete list and an incomplete one with `size` hits; two incomplete ones if nothing
    answers the question. `change` replaces words sometimes.
    """
    needed = pack.row("needed", case).tolist()
    wanted = set(needed)
    hard = [at for at in pack.row("distractors", case).tolist() if at not in wanted]
    trap = hard[:1] if not needed else []
    found = [at for at in pack.row("retrieved", case).tolist() if at not in wanted]
    size = max(size, len(needed))
    hard = [hard[at] for at in draw.permutation(len(hard)).tolist()]
    kind = draw.random()
    if kind < 0.4:  # BM25's hits
        others = _unique([*trap, *found, *hard])
    elif kind < 0.85:  # look-alikes first
        cut = int(draw.integers(1, len(hard) + 1)) if hard else 0
        others = _unique([*trap, *hard[:cut], *found])
    else:
        some = draw.choice(pack.shown, size).tolist()
        mixed = [*hard[:1], *found[:2], *some]
        others = _unique([*trap, *(mixed[at] for at in draw.permutation(len(mixed)).tolist())])
    others = [at for at in others if at not in wanted]
    few = len(pack.shown) <= size + len(wanted)  # most packs have thousands
    if few and len({*others, *pack.shown.tolist()} - wanted) <= size:
        raise ValueError(f"the pack has too few passages for lists of {size} hits")
    while len(others) < size + 1:
        others = _unique([*others, int(draw.choice(pack.shown))])
        others = [at for at in others if at not in wanted]
    lacking = 1 if draw.random() < 0.7 else int(draw.integers(1, len(needed) + 1)) if needed else 0
    kept = [needed[at] for at in draw.permutation(len(needed)).tolist()][
        min(lacking, len(needed)) :
    ]
    form = int(draw.choice(3, p=(0.75, 0.12, 0.13)))
    style = draw.random()
    if len(pack.row("titled", case)) and not len(pack.spans("answers", case)):
        style = OWN + style * (1 - OWN)  # without its title nothing answers
    joined = max(2, len(needed)) if draw.random() < JOINED else 0
    whole = (needed + others)[:size]
    part = (kept + others)[:size]
    if not needed:
        part = (others[1:] if draw.random() < 0.5 else others)[:size]
    first, second, breaks = _changes(pack, case, draw) if change else (_Change(), _Change(), False)
    lists = [
        _make(pack, case, form, whole, wanted, style, joined, draw, first),
        _make(pack, case, form, whole if breaks else part, wanted, style, joined, draw, second),
    ]
    if change and needed and not breaks and draw.random() < CUT:
        lacking_it = without_sentence(pack, case, lists[0], draw)
        return [lists[0], lacking_it or lists[1]]
    if change and draw.random() < SHORT and wanted <= _marked(pack, case).keys():
        lists = [one_sentence_each(pack, case, one, draw) for one in lists]
    return lists


def without_sentence(
    pack: Pack, case: int, listed: HitList, draw: np.random.Generator
) -> HitList | None:
    """The complete list made incomplete: what answers in one of its hits is removed. None if that
    is unknown, or little would be left of the hit.
    """
    marked: dict[int, list[tuple[int, int]]] = {}
    rows = pack.spans("evidence", case)
    for at, start, end in (rows if len(rows) else pack.spans("answers", case)).tolist():
        marked.setdefault(at, []).append((start, end))
    hits = list(listed.hits)
    for number in draw.permutation(len(hits)).tolist():
        passage, *more = hits[number].passages
        if passage not in marked or more:
            continue
        ids = pack.row("texts", passage)
        places = _sentences(ids, 1, len(ids))
        first, last = min(one[0] for one in marked[passage]), max(one[1] for one in marked[passage])
        start = max(one[0] for one in places if one[0] <= first)
        end = min(one[1] for one in places if one[1] >= last)
        if len(ids) - (end - start) >= LEFT:
            hits[number] = replace(hits[number], needed=False, cut=(start, end))
            order = [hits[at] for at in draw.permutation(len(hits)).tolist()]
            return replace(listed, hits=tuple(order), complete=False, answer=NOTHING)
    return None


def _marked(pack: Pack, case: int) -> dict[int, tuple[int, int]]:
    """Passage -> first token and end of what answers the question there."""
    rows = [*pack.spans("evidence", case).tolist(), *pack.spans("answers", case).tolist()]
    return {at: (start, end) for at, start, end in rows}


def one_sentence_each(pack: Pack, case: int, listed: HitList, draw: np.random.Generator) -> HitList:
    """The list with one sentence of each passage: the one with the answer if known."""
    marked = _marked(pack, case)

    def kept(passage: int) -> tuple[int, int]:
        ids = pack.row("texts", passage)
        places = _sentences(ids, 3, len(ids))
        if answer := marked.get(passage):  # the sentence it starts in, or all that it spans
            start = max((one[0] for one in places if one[0] <= answer[0]), default=0)
            end = min((one[1] for one in places if one[1] >= answer[1]), default=len(ids))
            return start, end
        return places[int(draw.integers(len(places)))] if places else (0, len(ids))

    hits = [replace(hit, kept=tuple(map(kept, hit.passages))) for hit in listed.hits]
    return replace(listed, hits=tuple(hits))


def draw_sentences(
    pack: Pack, case: int, size: int, draw: np.random.Generator
) -> list[HitList] | None:
    """A question made from one or two sentences of a case's look-alikes or BM25 hits: with them,
    and with one of them removed. None if no passage has a sentence to spare.
    """
    found = pack.row("distractors", case)[:12].tolist() if draw.random() < 0.5 else []
    found = _unique([*found, *pack.row("retrieved", case).tolist()])
    found = [found[at] for at in draw.permutation(len(found)).tolist()]
    wanted = 2 if size > 1 and draw.random() < 0.3 else 1
    chosen: dict[int, tuple[int, int]] = {}
    for passage in found:
        places = _sentences(pack.row("texts", passage), 8, 50)
        if len(places) > 1 and len(chosen) < wanted:
            chosen[passage] = places[int(draw.integers(len(places)))]
    if len(chosen) < wanted:
        return None
    parts = [
        _asked(pack, pack.row("texts", at)[slice(*place)], draw) for at, place in chosen.items()
    ]
    question = np.concatenate(parts)[:QUESTION]
    others = [at for at in found if at not in chosen]
    order = [*chosen, *others[: max(0, size - wanted)]]
    lacking = list(chosen)[int(draw.integers(wanted))]
    style = draw.random()
    titles = dict(zip(order, _titles(pack, order, style, draw), strict=True))
    evidence = np.array([[at, *place] for at, place in chosen.items()])
    lists = []
    for whole in (True, False):
        hits = []
        for at in [order[n] for n in draw.permutation(len(order)).tolist()]:
            gone = not whole and at == lacking
            cut = chosen[at] if gone else (0, 0)
            hits.append(Hit((at,), titles[at], at in chosen and not gone, {}, cut))
        nothing = np.zeros((0, 3), np.int64)
        answer = -1 if whole else NOTHING
        made = HitList(question, tuple(hits), whole, style, wanted, evidence, nothing, answer)
        lists.append(made)
    return lists


def _sentences(ids: Ints, least: int, most: int) -> list[tuple[int, int]]:
    """First token and end of each sentence with `least` to `most` tokens."""
    ends = (np.flatnonzero(np.isin(ids, SENTENCE_ENDS)) + 1).tolist()
    places = zip([0, *ends], [*ends, len(ids)], strict=True)
    return [(start, end) for start, end in places if least <= end - start <= most]


def _asked(pack: Pack, sentence: Ints, draw: np.random.Generator) -> Ints:
    """A query by someone who knows part of the sentence: the rest is the answer."""
    kept = sentence[np.isin(sentence, SENTENCE_ENDS, invert=True)]
    start = int(draw.integers(0, max(1, len(kept) - len(kept) // 3)))
    kept = np.delete(kept, slice(start, start + len(kept) // 3))
    often = pack.counts[kept] >= OFTEN * pack.counts.sum()
    if draw.random() < 0.7:  # keywords
        kept = kept[~often | (draw.random(len(kept)) < 0.25)]
    return kept[draw.random(len(kept)) > 0.05]


def with_orders(pack: Pack, listed: HitList, draw: np.random.Generator) -> HitList:
    """The list with claims, instructions or sentences from other passages in one or two of its
    hits, or the same in all, whatever their labels.
    """
    hits = list(listed.hits)
    everywhere = draw.random() < EVERYWHERE
    many = len(hits) if everywhere else min(len(hits), int(draw.integers(1, 3)))
    numbers = draw.integers(pack.orders, size=1 if everywhere else many)
    stray: tuple[int, ...] = ()
    if draw.random() < STRAY:
        ids = pack.row("texts", int(draw.choice(pack.shown)))
        places = _sentences(ids, 4, 40)
        stray = tuple(ids[slice(*places[0])].tolist()) if places else ()
    chosen = draw.permutation(len(hits))[:many]
    for at, number in zip(chosen.tolist(), np.resize(numbers, many).tolist(), strict=True):
        order = stray or tuple(pack.row("orders", number).tolist())
        place = {"before": order} if draw.random() < 0.5 else {"behind": order}
        hits[at] = replace(hits[at], **place)
    return replace(listed, hits=tuple(hits))


def natural_list(
    pack: Pack, case: int, size: int, draw: np.random.Generator, *, style: float = 1.0
) -> HitList:
    """BM25's hits, unchanged."""
    wanted = set(pack.row("needed", case).tolist())
    return _make(pack, case, 0, pack.row("retrieved", case).tolist()[:size], wanted, style, 0, draw)


# ---- batches


@dataclass(frozen=True)
class Batch:
    """Windows of some lists, the shortest first. Arrays up to `spans` have one row per window.

    The upper layers see the blocks of all windows of a list in one row of `longest` places, the
    first of which is for the list itself. `take` are the positions of all blocks among (windows,
    blocks), `put` their positions among (lists, longest).
    """

    ids: Ints  # (windows, tokens)
    types: Ints
    owner: Ints  # the list
    slot: Ints  # of the hit
    head: Ints  # position of the window's first block among (lists, longest)
    evidence: Ints  # (windows, blocks): 1 evidence, 0 not, -1 unknown
    spans: Ints  # (windows, 2): first and last token of the answer, or -1
    answer: Ints  # (lists,)
    needed: Ints  # (lists, SLOTS): 1, 0, or -1 if there is no such hit
    complete: Ints
    taught_needed: Ints  # the teacher's probabilities, as `needed`; -1 if there is none
    taught_complete: Ints
    count: Ints
    take: Ints
    put: Ints
    longest: int
    widths: tuple[int, ...]  # longest window, in tokens, in each of GROUPS parts


def _kept(hit: Hit, number: int, row: list[int]) -> list[int]:
    """What is left of a passage's tokens, or of their marks."""
    start, end = hit.cut
    row = row[:start] + row[end:]
    return row[slice(*hit.kept[number])] if hit.kept else row


def hit_tokens(pack: Pack, hit: Hit) -> tuple[list[int], list[int]]:
    """The tokens of a hit's title and text."""
    text: list[int] = []
    for number, passage in enumerate(hit.passages):
        text += _kept(hit, number, renamed(pack.row("texts", passage), hit.renames).tolist())
    return renamed(hit.title, hit.renames).tolist(), [*hit.before, *text, *hit.behind]


def _title_row(listed: HitList, hit: Hit) -> tuple[list[int], list[int], list[int]]:
    """The title's tokens, which are never evidence, and whether each belongs to the answer."""
    text: list[int] = renamed(hit.title, hit.renames).tolist()
    size = 0
    if hit.needed and not listed.titled.isdisjoint(hit.passages[:1]):
        size = text.index(BRACKET) if BRACKET in text[1:] else len(text)
    text += [COLON] * bool(text)
    return text, [-1] * len(text), [1] * size + [0] * (len(text) - size)


def _windows(pack: Pack, listed: HitList, hit: Hit) -> list[tuple[list[int], Ints, Ints]]:
    """(ids, evidence of each token, answer of each token) for each window of a hit."""
    text, marks, answer = _title_row(listed, hit)
    known = len(listed.evidence) > 0
    unmarked = 0 if known else -1

    def add(ids: Sequence[int]) -> None:
        """Tokens that are no part of the passages."""
        text.extend(ids)
        marks.extend([unmarked] * len(ids))
        answer.extend([0] * len(ids))

    add(hit.before)
    for number, passage in enumerate(hit.passages):
        ids = renamed(pack.row("texts", passage), hit.renames).tolist()
        mark, place = [unmarked] * len(ids), [0] * len(ids)
        for where, start, end in listed.evidence.tolist():
            if where == passage and hit.needed:
                mark[start:end] = [1] * (end - start)
        for where, start, end in listed.answers.tolist():
            if where == passage and hit.needed and listed.complete:
                place[start:end] = [1] * (end - start)
        text += _kept(hit, number, ids)
        marks += _kept(hit, number, mark)
        answer += _kept(hit, number, place)
    add(hit.behind)
    head = [CLS, *listed.question.tolist(), SEP]
    room = WINDOW - len(head) - 1
    found = []
    start = 0
    while True:
        piece = slice(start, start + room)
        ids = [*head, *text[piece], SEP]
        blank = [-1] * len(head)
        found.append(
            (
                ids,
                np.array([*blank, *marks[piece], -1]),
                np.array([*(0 for _ in head), *answer[piece], 0]),
            )
        )
        if start + room >= len(text):
            return found
        start += room - OVERLAP


def collate(
    pack: Pack, lists: Sequence[HitList], draw: np.random.Generator, most: int = 40
) -> Batch:
    """Lists as padded arrays, with at most `most` windows per list."""
    rows = []  # (window, list, slot, tokens before the text)
    needed = np.full((len(lists), SLOTS), -1, np.int64)
    taught = np.full((len(lists), SLOTS + 1), -1, np.float32)
    for number, listed in enumerate(lists):
        chosen = draw.permutation(SLOTS)[: len(listed.hits)].tolist()
        if listed.taught:
            taught[number, [*chosen, SLOTS]] = listed.taught
        held = 0
        for slot, hit in zip(chosen, listed.hits, strict=False):
            needed[number, slot] = hit.needed
            for window in _windows(pack, listed, hit)[: most - held]:
                rows.append((window, number, slot, len(listed.question) + 2))
                held += 1
    rows.sort(key=lambda row: len(row[0][0]))
    lengths = np.array([len(row[0][0]) for row in rows])
    tokens = -(-(lengths - 1) // BLOCK) * BLOCK + 1
    count, width = len(rows), int(tokens.max())
    ids, types = np.zeros((count, width), np.int64), np.zeros((count, width), np.int64)
    evidence = np.full((count, (width - 1) // BLOCK), -1, np.int64)
    spans = np.full((count, 2), -1, np.int64)
    for at, ((read, marks, answer), _, _, text) in enumerate(rows):
        ids[at, : len(read)] = read
        types[at, text : len(read)] = 1
        full = np.full(width - 1, -1)
        full[: len(read) - 1] = marks[1:]
        evidence[at] = full.reshape(-1, BLOCK).max(axis=1)
        if answer.any():
            first = int(answer.argmax())
            rest = answer[first:]
            spans[at] = first, first + (len(rest) if rest.all() else int(rest.argmin())) - 1
    owner = np.array([row[1] for row in rows])
    blocks = (tokens - 1) // BLOCK + 1
    start = np.ones(len(lists), np.int64)  # the first place is for the list itself
    head = np.zeros(count, np.int64)
    for at in range(count):
        head[at] = start[owner[at]]
        start[owner[at]] += blocks[at]
    longest = int(start.max())
    head += owner * longest
    along = np.arange(int(blocks.max()))
    take = (np.arange(count)[:, None] * len(along) + along)[along < blocks[:, None]]
    put = (head[:, None] + along)[along < blocks[:, None]]
    ends = [part[-1] for part in np.array_split(tokens, GROUPS) if len(part)]
    return Batch(
        ids, types, owner, np.array([row[2] for row in rows]), head, evidence, spans,
        np.array([one.answer for one in lists], np.int64), needed,
        np.array([one.complete for one in lists], np.int64), taught[:, :SLOTS], taught[:, SLOTS],
        np.array([one.count for one in lists], np.int64),
        take, put, longest, tuple(int(one) for one in ends),
    )  # fmt: skip


def draw_lists(
    pack: Pack, pools: Mapping[str, Ints], windows: int, draw: np.random.Generator,
    weights: Mapping[str, float] = WEIGHTS,
) -> list[HitList]:  # fmt: skip
    """Pairs of lists with about this many windows in all; all have the same number of hits."""
    every = np.concatenate([pool for pool in pools.values() if len(pool)])
    pools = {**pools, SENTENCES: every}
    names = [name for name in weights if len(pools.get(name, ()))]
    shares = np.array([weights[name] for name in names])
    size = int(draw.choice([1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20],
                           p=[.07, .08, .1, .1, .1, .1, .12, .2, .06, .04, .03]))  # fmt: skip
    lists: list[HitList] = []
    tries = 0
    while len(lists) * max(size, 2) < windows:
        if tries == TRIES:
            raise ValueError(f"the pack has no case for lists of {size} hits: it is too small")
        name = names[int(draw.choice(len(names), p=shares / shares.sum()))]
        case = int(pools[name][draw.integers(len(pools[name]))])
        found: list[HitList] | None = None
        if name == SENTENCES:
            found = draw_sentences(pack, case, size, draw)
        elif size > 1 or len(pack.row("needed", case)) <= 1:
            found = draw_pair(pack, case, size, draw, change=True)
        lists += found or []
        tries = 0 if found else tries + 1
    ordered = draw.random(len(lists)) < ORDERED
    return [
        with_orders(pack, one, draw) if some else one
        for one, some in zip(lists, ordered, strict=True)
    ]
