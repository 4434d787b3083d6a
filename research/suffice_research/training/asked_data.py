"""Documents to ask about, and which questions of a language model to keep.

A group is a question with its needed documents and look-alikes, from `cases`. A language model is
tuned on the groups in part `learn`, asks further questions about their documents, and judges them:
see `asked_model`. Nothing here needs torch or the data sets.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.errors import InputError
from suffice_research.training.sources import normalize_words

if TYPE_CHECKING:
    from suffice_research.training.cases import Case, Passage

T = TypeVar("T")

__all__ = [
    "AskedQuestion",
    "Document",
    "Group",
    "KeptQuestion",
    "WrittenCase",
    "draw_groups",
    "keep_questions",
    "load_groups",
    "load_questions",
    "load_rows",
    "save_kept",
    "save_rows",
]

# Groups in part `learn` from each public source; everyday uses all of its cases.
MOST: Mapping[str, int] = {
    "squad2": 2500, "policyqa": 1200, "hotpotqa": 1200, "multihop_rag": 800, "tatqa": 600,
    "2wiki": 300, "musique": 200,
}  # fmt: skip
MOST_JUDGED = 150  # groups for figures, per public source
DOCUMENTS, CHARACTERS = 10, 5000  # per group at most; everyday may have more characters
LOOK_ALIKES, FOUND = 2, 6  # of each kind per public group; hits to draw them from
LEARN, STACK, TEST, UNSEEN = "learn", "stack", "test", "unseen"

NOT_NEEDED, NEEDED = 0.25, 0.5  # probabilities in between are uncertain
NOT_COMPLETE = 0.05  # below it, something is certainly missing
NOTHING = 0.05  # highest probability of a document if nothing answers the question
WORDS = (3, 45)  # per question
PLAIN_BYTES = 2_000_000  # a larger file is compressed


@dataclass(frozen=True)
class Document:
    title: str
    text: str


@dataclass(frozen=True)
class Group:
    case: int  # its index among all cases
    source: str
    part: str
    question: str
    needed: tuple[int, ...]  # positions among the documents
    docs: tuple[Document, ...]  # as shown: half of the public ones without titles
    keys: tuple[str, ...]  # `Passage.key` of each


@dataclass(frozen=True)
class AskedQuestion:
    """A question about a group, the documents it should need, and its judgement."""

    case: int
    needed: tuple[int, ...]
    question: str
    p: tuple[float, ...] = ()  # that each document is needed; that all together suffice


@dataclass(frozen=True)
class WrittenCase:
    """A question with documents, all by a language model, see `written_cases`."""

    like: str  # the source that it imitates
    question: str
    docs: tuple[Document, ...]  # that it should need
    distractors: tuple[Document, ...]


@dataclass(frozen=True)
class KeptQuestion:
    question: str
    needed: tuple[str, ...]  # keys of passages
    others: tuple[str, ...]


# ---- groups


def draw_groups(
    cases: Sequence[Case], retrieved: Sequence[Sequence[Passage]], shown: Collection[Passage],
    numbered: Collection[Passage],
) -> list[Group]:  # fmt: skip
    """Groups in random order, from cases as `reader_data.hide_judged` returns them. Those in part
    `learn` contain only passages from `shown`, besides what their question needs.
    """
    draw = np.random.default_rng(0)
    groups: list[Group] = []
    counts: Counter[tuple[str, str]] = Counter()
    for number in draw.permutation(len(cases)).tolist():
        case = cases[number]
        source = case.source.split("/")[0]
        own = source == "everyday"
        if not own:
            if counts[source, case.part] >= _most(source, case.part):
                continue
            counts[source, case.part] += 1
        if case.part == STACK:
            continue
        others = [one for one in case.distractors if one in numbered]
        if not own:
            others = _look_alikes(case, others, retrieved[number], shown, draw)
        if case.part == LEARN:
            others = [one for one in others if one in shown]
        passages = list(dict.fromkeys([*case.needed, *others]))[:DOCUMENTS]
        if len(passages) < 2 or (not own and sum(len(one.text) for one in passages) > CHARACTERS):
            continue
        needed = tuple(passages.index(one) for one in case.needed if one in passages)
        docs = tuple(
            Document(one.title if own or draw.random() < 0.5 else "", one.text) for one in passages
        )
        keys = tuple(one.key for one in passages)
        groups.append(Group(number, case.source, case.part, case.question, needed, docs, keys))
    return groups


def _most(source: str, part: str) -> int:
    if part == LEARN:
        return MOST.get(source, 0)
    return MOST_JUDGED if part == UNSEEN or (part == TEST and source in MOST) else 0


def _look_alikes(
    case: Case, others: Sequence[Passage], hits: Sequence[Passage], shown: Collection[Passage],
    draw: np.random.Generator,
) -> list[Passage]:  # fmt: skip
    """Some of the case's own look-alikes and some of BM25's hits."""
    hard = [others[at] for at in draw.permutation(len(others))[:LOOK_ALIKES]]
    found = [
        one
        for one in hits
        if one not in case.needed and one not in hard and (case.part != LEARN or one in shown)
    ][:FOUND]
    return list(
        dict.fromkeys(hard + [found[at] for at in draw.permutation(len(found))[:LOOK_ALIKES]])
    )


# ---- kept questions


def keep_questions(
    asked: Iterable[AskedQuestion], groups: Mapping[int, Group], known: Collection[str]
) -> tuple[list[KeptQuestion], Counter[str]]:
    """The questions judged to need exactly the intended documents, sorted by text, and how many
    were kept or dropped, by reason. `known` are the texts of questions in the data sets.
    """
    seen: set[tuple[int, str]] = set()
    kept: list[KeptQuestion] = []
    counts: Counter[str] = Counter()
    for one in asked:
        again = (one.case, one.question.lower())
        reason = "asked twice" if again in seen else _reason_against(one)
        if not reason:
            seen.add(again)
            if normalize_words(one.question) in known:
                reason = "known question"
        if reason:
            counts[reason] += 1
            continue
        keys, needed = groups[one.case].keys, one.needed
        counts[f"kept, {len(needed)} needed"] += 1
        others = tuple(key for at, key in enumerate(keys) if at not in needed)
        kept.append(KeptQuestion(one.question, tuple(keys[at] for at in sorted(needed)), others))
    return sorted(kept, key=lambda row: (row.question.lower(), *asdict(row).values())), counts


def _reason_against(one: AskedQuestion) -> str:
    """Why a question is dropped; empty if it is kept."""
    if not WORDS[0] <= len(one.question.split()) <= WORDS[1] or "[" in one.question:
        return "form"
    needed = [one.p[at] for at in one.needed]
    others = [p for at, p in enumerate(one.p[:-1]) if at not in one.needed]
    if not needed:
        return "something may answer it" if max(others) > NOTHING else ""
    if min(needed) < NEEDED or max(others, default=0.0) > NOT_NEEDED:
        return "judged otherwise"
    return "not complete" if one.p[-1] < NOT_COMPLETE else ""


# ---- files


STEPS = (
    "the steps are groups, ask, judge, keep, or groups, write, or passages, ask-passages, "
    "keep-passages: each reads what came before it"
)


def load_rows(path: Path, make: Callable[[Any], T], what: str = "row of it") -> list[T]:
    """Rows as `save_rows` writes them."""
    if not path.is_file():
        raise InputError(f"{path} does not exist", hint=STEPS)
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            found.append(make(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"line {number} of {path} is not a {what}", hint=STEPS) from error
    return found


def save_rows(rows: Iterable[Any], path: Path) -> None:
    """Write data classes as rows one by one, so that earlier ones remain if a later one fails."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(asdict(row)) + "\n")


def load_groups(path: Path) -> list[Group]:
    return load_rows(path, lambda row: Group(
        row["case"], row["source"], row["part"], row["question"], tuple(row["needed"]),
        tuple(Document(**one) for one in row["docs"]), tuple(row["keys"]),
    ))  # fmt: skip


def load_questions(path: Path) -> list[AskedQuestion]:
    return load_rows(path, lambda row: AskedQuestion(
        row["case"], tuple(row["needed"]), row["question"], tuple(row.get("p", ()))
    ))  # fmt: skip


def save_kept(rows: Iterable[KeptQuestion], folder: Path) -> Path:
    """Write `questions.jsonl` in the folder, or `questions.jsonl.gz` if it would be large. Existing
    files stay if there is nothing to write.
    """
    content = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows).encode()
    if not content:
        raise InputError("no question was kept", hint=STEPS)
    plain, packed = folder / "questions.jsonl", folder / "questions.jsonl.gz"
    path, old = (packed, plain) if len(content) > PLAIN_BYTES else (plain, packed)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path == packed else content)
    old.unlink(missing_ok=True)
    return path
