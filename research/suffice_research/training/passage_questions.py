"""Single passages to ask about, and which questions of a language model about them to keep.

The model asks about one passage at a time and says what the answer is; then it answers its own
question. A question is kept if both answers agree and are words of the passage. Two questions form
a chain if the answer of the first is the title of the passage of the second: the model words the
chain as one question, which needs both passages. See `passage_model`. Nothing here needs torch.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.errors import InputError
from suffice_research.training.asked_data import STEPS, load_rows
from suffice_research.training.sources import normalize_words

if TYPE_CHECKING:
    from suffice_research.training.cases import Case, Passage

T = TypeVar("T")

__all__ = [
    "AskedChain",
    "KnownChain",
    "KnownQuestion",
    "PassageQuestion",
    "SinglePassage",
    "chain_questions",
    "keep_chains",
    "keep_questions",
    "known_chains",
    "known_questions",
    "load_records",
    "passages_to_ask",
    "save_compressed",
]

# Questions per passage of each source, and in whose style they are asked.
EACH: Mapping[str, int] = {
    "hotpotqa": 2, "2wiki": 2, "musique": 3, "squad2": 6, "policyqa": 6, "multihop_rag": 4,
    "tatqa": 3, "everyday": 1,
}  # fmt: skip
ENCYCLOPEDIA = ("squad2", "squad2", "mirrored", "musique")
STYLES: Mapping[str, tuple[str, ...]] = {
    "hotpotqa": ENCYCLOPEDIA, "2wiki": ENCYCLOPEDIA, "musique": ENCYCLOPEDIA,
    "squad2": ("squad2", "mirrored"), "policyqa": ("policyqa", "mirrored"),
    "multihop_rag": ("squad2", "mirrored"), "tatqa": ("mirrored",),
    "everyday": ("everyday", "mirrored"),
}  # fmt: skip
SIBLINGS = 5  # look-alikes of an everyday passage that must not answer its questions
LETTERS = (30, 1500)  # per passage
WORDS, ANSWER = (4, 30), 14  # per question; per answer at most
SURE, NOTHING_ELSE = 0.35, 0.5  # least probabilities: of the answer, of nothing in a look-alike
PER_TITLE, CHAINS = 3, 40_000  # chains that end at a title, and in all, at most
LONG_CHAINS = 0.25  # share of chains with three questions
CHAIN_WORDS = (6, 45)
RUN = 12  # words in a row that a question or answer may not share with a public passage
MISSING = "about a passage that is not there"
REFERENCE = re.compile(r"#\d")


@dataclass(frozen=True)
class SinglePassage:
    key: str  # `Passage.key`
    source: str
    title: str
    text: str
    others: tuple[int, ...] = ()  # look-alikes, as positions among the passages


@dataclass(frozen=True)
class KnownQuestion:
    """To tune on. No answer: the passage only looks right."""

    style: str
    title: str
    text: str
    question: str
    answer: str


@dataclass(frozen=True)
class KnownChain:
    """To tune on: questions, each of which may refer to an earlier answer as #1, and all in one."""

    parts: tuple[str, ...]
    question: str


@dataclass(frozen=True)
class PassageQuestion:
    key: str
    question: str
    answer: str
    p: float = 0.0  # that the model gives this answer to its own question
    nothing: float = 1.0  # the least probability that a look-alike answers nothing


@dataclass(frozen=True)
class AskedChain:
    keys: tuple[str, ...]
    parts: tuple[str, ...]
    answers: tuple[str, ...]
    question: str = ""


# ---- what to ask about, and what to tune on


def passages_to_ask(cases: Iterable[Case], shown: Collection[Passage]) -> list[SinglePassage]:
    """Passages that training may show, each once."""
    found: dict[Passage, str] = {}
    beside: dict[Passage, dict[Passage, None]] = defaultdict(dict)
    least, most = LETTERS
    for case in cases:
        source = case.source.split("/")[0]
        if case.part != "learn" or source not in EACH:
            continue
        some = [
            one
            for one in (*case.needed, *case.distractors)
            if one in shown and least <= len(one.text) <= most
        ]
        for one in some:
            found.setdefault(one, source)
            if source == "everyday":
                beside[one] |= dict.fromkeys(other for other in some if other != one)
    numbers = {one: number for number, one in enumerate(found)}
    return [
        SinglePassage(
            one.key, source, one.title, one.text,
            tuple(numbers[other] for other in list(beside[one])[:SIBLINGS]),
        )
        for one, source in found.items()
    ]  # fmt: skip


def known_questions(cases: Iterable[Case]) -> Iterator[KnownQuestion]:
    """Questions about one passage with their answer, and with a passage that only looks right."""
    for case in cases:
        style = case.source.split("/")[0]
        if case.part != "learn" or style not in {one for some in STYLES.values() for one in some}:
            continue
        if len(case.needed) == 1 and case.answers:
            span = case.answers[0]
            answer = span.passage.text[span.start : span.end].strip()
            if 0 < len(answer.split()) <= ANSWER:
                one = case.needed[0]
                yield KnownQuestion(style, one.title, one.text, case.question, answer)
        if len(case.needed) < 2 and case.distractors:
            other = case.distractors[0]
            yield KnownQuestion(style, other.title, other.text, case.question, "")


def known_chains(rows: Iterable[Mapping[str, Any]]) -> Iterator[KnownChain | KnownQuestion]:
    """MuSiQue's questions with their parts, and the parts that refer to no other."""
    for row in rows:
        parts = [one["question"].strip() for one in row["question_decomposition"]]
        yield KnownChain(tuple(parts), row["question"])
        for part, one in zip(parts, row["question_decomposition"], strict=True):
            passage = row["paragraphs"][one["paragraph_support_idx"]]
            text, answer = passage["paragraph_text"], one["answer"]
            if not REFERENCE.search(part) and ">>" not in part and answer in text:
                yield KnownQuestion("musique", passage["title"], text, part, answer)


# ---- chains


def _name(title: str) -> str:
    return title.split("(")[0].strip()


def chain_questions(
    passages: Sequence[SinglePassage], asked: Iterable[PassageQuestion], seed: int = 0
) -> list[AskedChain]:
    """Chains of two or three questions, without their wording."""
    by_key = {one.key: one for one in passages}
    titled: dict[str, list[PassageQuestion]] = defaultdict(list)  # questions that name their title
    sure = [one for one in asked if one.p >= SURE and one.key in by_key]
    for one in sure:
        name = _name(by_key[one.key].title)
        if len(name) > 3 and re.search(rf"\b{re.escape(name)}\b", one.question, re.I):
            titled[name.lower()].append(one)
    draw = np.random.default_rng(seed)
    ends: Counter[str] = Counter()
    chains: list[AskedChain] = []
    for at in draw.permutation(len(sure)).tolist():
        chain = [sure[at]]
        wanted = 3 if draw.random() < LONG_CHAINS else 2
        while len(chain) < wanted:
            nexts = titled.get(chain[-1].answer.lower(), [])
            some = [one for one in nexts if _continues(chain, one, by_key)]
            if not some:
                break
            chain.append(some[int(draw.integers(len(some)))])
        end = chain[-1].key
        if len(chain) > 1 and ends[end] < PER_TITLE and len(chains) < CHAINS:
            ends[end] += 1
            chains.append(_chain(chain, by_key))
    return chains


def _continues(
    chain: Sequence[PassageQuestion], after: PassageQuestion, by_key: Mapping[str, SinglePassage]
) -> bool:
    """Whether a question continues a chain so that every passage is needed: the last does not name
    what the first asks about, and no earlier one has the answer.
    """
    if after.key in {one.key for one in chain} or len(after.answer) < 2:
        return False
    answer, words = after.answer.lower(), set(normalize_words(by_key[after.key].text).split())
    named = [
        one.lower()
        for one in re.findall(r"(?<=\s)[A-Z][\w'-]+", chain[0].question)
        if one.lower() not in chain[-1].answer.lower()
    ]
    return any(one not in words for one in named) and not any(
        answer in by_key[one.key].text.lower() or answer in one.question.lower() for one in chain
    )


def _chain(chain: Sequence[PassageQuestion], by_key: Mapping[str, SinglePassage]) -> AskedChain:
    parts = [chain[0].question]
    for number, one in enumerate(chain[1:], 1):
        name = _name(by_key[one.key].title)
        parts.append(re.sub(rf"\b{re.escape(name)}\b", f"#{number}", one.question, flags=re.I))
    return AskedChain(
        tuple(one.key for one in chain), tuple(parts), tuple(one.answer for one in chain)
    )


# ---- kept questions


def keep_questions(
    asked: Iterable[PassageQuestion], passages: Sequence[SinglePassage], known: Collection[str]
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Rows for `research/asked`, sorted, and how many were kept or dropped, by reason. `known` are
    the normalized questions of the data sets.
    """
    by_key = {one.key: one for one in passages}
    seen: set[tuple[str, str]] = set()
    counts: Counter[str] = Counter()
    rows = []
    for one in asked:
        words = normalize_words(one.question)
        reason = _reason_against(one, by_key, words)
        if not reason and (one.key, words) in seen:
            reason = "asked twice"
        if not reason and words in known:
            reason = "known question"
        counts[reason or "kept"] += 1
        if not reason:
            seen.add((one.key, words))
            others = [passages[at].key for at in by_key[one.key].others]
            rows.append(_row(one.question, [one.key], others, one.answer))
    return sorted(rows, key=_order), counts


def _reason_against(one: PassageQuestion, by_key: Mapping[str, SinglePassage], words: str) -> str:
    """Why a question is dropped; empty if it is kept."""
    passage, (least, most) = by_key.get(one.key), WORDS
    if passage is None:
        return MISSING
    if not least <= len(one.question.split()) <= most or "\n" in one.question:
        return "form"
    if one.answer not in passage.text or not 0 < len(one.answer.split()) <= ANSWER:
        return "answer not in the passage"
    if normalize_words(one.answer) in words:
        return "answer in the question"
    if one.p < SURE:
        return "answered otherwise"
    if _repeats((one.question, one.answer), [passage]):
        return "repeats the passage"
    if one.nothing < NOTHING_ELSE:
        return "a look-alike may answer it"
    telling = {word for word in words.split() if len(word) > 3}
    held = set(normalize_words(f"{passage.title} {passage.text}").split())
    return "" if len(telling & held) >= 2 else "about something else"


def _repeats(texts: Iterable[str], passages: Iterable[SinglePassage]) -> bool:
    """Whether a text copies a public passage, which the kept files must not contain."""
    for passage in passages:
        words = f" {normalize_words(passage.text)} "
        for own in (normalize_words(text).split() for text in texts):
            runs = (own[at : at + RUN] for at in range(len(own) - RUN + 1))
            if passage.source != "everyday" and any(f" {' '.join(one)} " in words for one in runs):
                return True
    return False


def keep_chains(
    chains: Iterable[AskedChain], passages: Sequence[SinglePassage], known: Collection[str]
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The same for chains: their wording must not give away an answer."""
    by_key = {one.key: one for one in passages}
    seen: set[str] = set()
    counts: Counter[str] = Counter()
    rows = []
    for one in chains:
        words = normalize_words(one.question)
        reason = _reason_against_chain(one, by_key, words)
        if not reason and (words in seen or words in known):
            reason = "asked twice or known"
        counts[reason or f"kept, {len(one.keys)} needed"] += 1
        if not reason:
            seen.add(words)
            rows.append(_row(one.question, list(one.keys), [], one.answers[-1]))
    return sorted(rows, key=_order), counts


def _reason_against_chain(one: AskedChain, by_key: Mapping[str, SinglePassage], words: str) -> str:
    least, most = CHAIN_WORDS
    if any(key not in by_key for key in one.keys):
        return MISSING
    if not least <= len(one.question.split()) <= most or REFERENCE.search(one.question):
        return "form"
    if any(normalize_words(answer) in words for answer in one.answers):
        return "names an answer"
    if not all(_about(part, words) for part in one.parts):
        return "a part is lost"
    if one.answers[-1] not in by_key[one.keys[-1]].text:
        return "answer not in the passage"
    copied = _repeats((one.question, one.answers[-1]), [by_key[key] for key in one.keys])
    return "repeats the passage" if copied else ""


def _about(part: str, words: str) -> bool:
    """Whether a question still has half of the names of one of its parts."""
    named = {one.lower() for one in re.findall(r"(?<=\s)[A-Z][\w-]+", part)}
    held = set(words.split())
    return len([one for one in named if normalize_words(one) in held]) * 2 >= len(named)


def _row(question: str, needed: list[str], others: list[str], answer: str) -> dict[str, Any]:
    return {"question": question, "needed": needed, "others": others, "answer": answer}


def _order(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (row["question"].lower(), row["question"], *row["needed"])


# ---- files


def load_records(path: Path, kind: type[T]) -> list[T]:
    """Rows of one of these kinds."""

    def make(row: Mapping[str, Any]) -> T:
        return kind(
            **{name: tuple(one) if isinstance(one, list) else one for name, one in row.items()}
        )

    return load_rows(path, make, kind.__name__)


def save_compressed(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if not content:
        raise InputError("no question was kept", hint=STEPS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode(), mtime=0))
