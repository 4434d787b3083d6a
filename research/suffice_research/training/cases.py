"""The cases of the data sets: the reader, the gate and the bridge are trained and measured on them.

A case is a question, the passages that it needs, and passages that only look right. `load_cases`
reads those of eleven public data sets and our own (`research/everyday`). Each case belongs to one
part:

    learn    the reader is trained on it
    stack    the gate is fitted and calibrated on it: the reader has not seen it
    test     figures of a known source
    unseen   figures of a domain that nothing was trained on

Questions about the same article or website, or with the same text, are in one part.

`suffice_research.training.reader_data` adds the reader's further questions and packs them all.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suffice.errors import InputError
from suffice_research.training.sources import normalize_words

__all__ = [
    "EVERYDAY",
    "PARTS",
    "SOURCES",
    "WIDE",
    "Case",
    "Passage",
    "Span",
    "everyday_cases",
    "find_answer",
    "learned_chains",
    "load_cases",
    "part_of",
    "read_lines",
    "shown_passages",
    "titled_passages",
    "yes_or_no",
]

PARTS = LEARN, STACK, TEST, UNSEEN = ("learn", "stack", "test", "unseen")
UNSEEN_SOURCES = (
    "covidqa", "everyday/legal_finance", "everyday/home_texts", "everyday/short_notes",
    "everyday/mixed_kinds",
)  # fmt: skip
STACK_SOURCES = ("everyday/bare_facts",)  # only for the gate, which sees few such short texts
EVERYDAY = Path(__file__).resolve().parents[2] / "everyday"
WIDE = EVERYDAY / "wide"  # only for the deep judge
CHUNK = 110  # words per chunk of a long article


@dataclass(frozen=True)
class Passage:
    title: str
    text: str

    @property
    def key(self) -> str:
        """A short hash, by which `research/asked` names passages without containing their text."""
        return hashlib.sha256(f"{self.title}\0{self.text}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Span:
    """Characters of a passage's text."""

    passage: Passage
    start: int
    end: int


@dataclass(frozen=True)
class Case:
    source: str
    group: str  # the article, website or case: never in two parts
    question: str
    needed: tuple[Passage, ...]
    distractors: tuple[Passage, ...]
    evidence: tuple[Span, ...] = ()
    answers: tuple[Span, ...] = ()
    yes: bool | None = None  # the answer, if it is yes or no
    part: str = ""  # decided by the group
    titled: tuple[Passage, ...] = ()  # needed passages whose title is the answer


def _text(path: Path) -> str:
    if not path.is_file():
        raise InputError(
            f"{path} does not exist",
            hint="--data is the folder that holds hotpotqa/, squad2/, everyday/, ...",
        )
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")


def _json(path: Path) -> Any:
    return json.loads(_text(path))


def read_lines(path: Path) -> Iterator[Any]:
    return map(json.loads, _text(path).splitlines())


def find_answer(
    answer: str, passages: Iterable[Passage], evidence: Sequence[Span] = ()
) -> tuple[Span, ...]:
    """The answer's first occurrence in each passage that has it, in its evidence if possible."""
    if len(answer) < 2 or answer.lower() in ("yes", "no"):
        return ()
    found = []
    for one in passages:
        parts = [(span.start, span.end) for span in evidence if span.passage == one]
        for start, end in (*parts, (0, len(one.text))):
            at = one.text.lower().find(answer.lower(), start, end)
            if at >= 0:
                found.append(Span(one, at, at + len(answer)))
                break
    return tuple(found)


def titled_passages(answer: str, passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages whose title, without a parenthesis at its end, is the answer."""
    wanted = normalize_words(answer)
    return tuple(
        one for one in passages if wanted and normalize_words(one.title.split("(")[0]) == wanted
    )


def yes_or_no(answer: str) -> bool | None:
    """Whether the answer is yes; None if it is neither yes nor no."""
    said = re.match(r"(yes|no)\b", answer.strip().lower())
    return said.group() == "yes" if said else None


# ---- sources


def _wikipedia(path: Path, source: str, joint: str) -> Iterator[Case]:
    """HotpotQA and 2WikiMultihopQA, distractor layout."""
    for row in _json(path):
        facts = {(title, number) for title, number in row["supporting_facts"]}
        titles = {title for title, _ in facts}
        needed: list[Passage] = []
        others: list[Passage] = []
        evidence = []
        for title, sentences in row["context"]:
            passage = Passage(title, joint.join(sentences))
            (needed if title in titles else others).append(passage)
            at = 0
            for number, sentence in enumerate(sentences):
                if (title, number) in facts:
                    evidence.append(Span(passage, at, at + len(sentence)))
                at += len(sentence) + len(joint)
        if len(needed) == len(titles):
            answers = find_answer(row["answer"], needed, evidence)
            yield Case(
                source, row["_id"], row["question"], tuple(needed), tuple(others),
                tuple(evidence), answers[:2], yes_or_no(row["answer"]),
                titled=titled_passages(row["answer"], needed),
            )  # fmt: skip


def _hotpotqa(data: Path) -> Iterator[Case]:
    yield from _wikipedia(data / "hotpotqa/hotpotqa_dev.json.gz", "hotpotqa", "")


def _two_wiki(data: Path) -> Iterator[Case]:
    yield from _wikipedia(data / "2wikimultihopqa/2wikimultihopqa_dev.json.gz", "2wiki", " ")


def _musique(data: Path) -> Iterator[Case]:
    for row in _json(data / "musique/musique.json"):
        needed: list[Passage] = []
        others: list[Passage] = []
        for one in row["paragraphs"]:
            passage = Passage(one["title"], one["paragraph_text"])
            (needed if one["is_supporting"] else others).append(passage)
        answers = find_answer(row["answer"], needed)
        yield Case(
            "musique", row["id"], row["question"], tuple(needed), tuple(others), (), answers[-1:],
            titled=titled_passages(row["answer"], needed),
        )  # fmt: skip


def learned_chains(data: Path) -> list[Any]:
    """MuSiQue's rows of part `learn`, with their decompositions."""
    rows = _json(data / "musique/musique.json")
    return [row for row in rows if part_of("musique", row["id"]) == LEARN]


def _squad(data: Path) -> Iterator[Case]:
    for article in _json(data / "squad2/dev.json.gz")["data"]:
        title = article["title"].replace("_", " ")
        passages = [Passage(title, one["context"]) for one in article["paragraphs"]]
        for passage, paragraph in zip(passages, article["paragraphs"], strict=True):
            others = tuple(one for one in passages if one != passage)
            for row in paragraph["qas"]:
                if row["is_impossible"]:
                    case = Case("squad2", title, row["question"], (), (passage, *others))
                else:
                    answer = row["answers"][0]
                    start = answer["answer_start"]
                    span = Span(passage, start, start + len(answer["text"]))
                    case = Case(
                        "squad2", title, row["question"], (passage,), others,
                        (_sentence(span),), (span,),
                    )  # fmt: skip
                yield case


def _sentence(span: Span) -> Span:
    """The sentence around a span, approximately."""
    text = span.passage.text
    start = max(text.rfind(". ", 0, span.start), text.rfind("\n", 0, span.start)) + 1
    end = text.find(". ", span.end)
    return Span(span.passage, max(start, 0), len(text) if end < 0 else end + 1)


def _policies(data: Path) -> Iterator[Case]:
    for site in _json(data / "policyqa/dev.json.gz")["data"]:
        passages = [Passage(site["title"], one["context"]) for one in site["paragraphs"]]
        answered: dict[str, set[int]] = defaultdict(set)
        for number, paragraph in enumerate(site["paragraphs"]):
            for row in paragraph["qas"]:
                kind = row.get("type", "").split("|||")[0]
                answered[kind].add(number)
        for number, paragraph in enumerate(site["paragraphs"]):
            for row in paragraph["qas"]:
                kind = row.get("type", "").split("|||")[0]
                others = tuple(
                    one for at, one in enumerate(passages)
                    if at not in answered[kind] and one != passages[number]
                )  # fmt: skip
                if len(others) < 3:
                    continue
                start = row["answers"][0]["answer_start"]
                span = Span(passages[number], start, start + len(row["answers"][0]["text"]))
                yield Case(
                    "policyqa", site["title"], row["question"], (passages[number],), others,
                    (_sentence(span),), (span,),
                )  # fmt: skip


def _chunks(title: str, text: str, words: int = CHUNK) -> list[tuple[int, Passage]]:
    """An article in chunks, each with its start position."""
    places = [found.start() for found in re.finditer(r"\S+", text)][::words]
    ends = [*places[1:], len(text)]
    return [(at, Passage(title, text[at:end])) for at, end in zip(places, ends, strict=True)]


def _covid(data: Path) -> Iterator[Case]:
    for number, article in enumerate(_json(data / "covidqa/covidqa.json.gz")["data"]):
        for paragraph in article["paragraphs"]:
            chunks = _chunks("", paragraph["context"])
            for row in paragraph["qas"]:
                start = row["answers"][0]["answer_start"]
                end = start + len(row["answers"][0]["text"])
                held = [
                    (at, one) for at, one in chunks if at <= start and end <= at + len(one.text)
                ]
                if held:
                    at, chunk = held[0]
                    others = tuple(one for _, one in chunks if one != chunk)
                    span = Span(chunk, start - at, end - at)
                    yield Case(
                        "covidqa", str(number), row["question"], (chunk,), others,
                        (_sentence(span),), (span,),
                    )  # fmt: skip


def _entailment(data: Path) -> Iterator[Case]:
    for path in ("entailmentbank/train.jsonl.gz", "entailmentbank/dev.jsonl.gz"):
        for row in read_lines(data / path):
            found = re.search(
                r"\$question\$ = (.*) ; \$answer\$ = (.*) ; \$hypothesis\$ = (.*) ; \$context\$ = "
                r"(.*)", row["input"]
            )  # fmt: skip
            if found is None:
                continue
            question, answer, hypothesis, context = found.groups()
            facts = dict(re.findall(r"(sent\d+): (.*?)(?= sent\d+: |$)", context))
            used = set(re.findall(r"sent\d+", row["output"]))
            passages = {name: Passage("", text.strip()) for name, text in facts.items()}
            needed = tuple(passages[name] for name in facts if name in used)
            others = tuple(passages[name] for name in facts if name not in used)
            if 1 <= len(needed) <= 5:
                claim = hypothesis if len(row["id"]) % 2 else f"{question} {answer}"
                yield Case("entailmentbank", row["id"], claim, needed, others)


def _strategy(data: Path) -> Iterator[Case]:
    for row in _json(data / "strategyqa/train.json.gz"):
        needed = tuple(Passage("", text) for text in dict.fromkeys(row["facts"]))
        if needed:
            yes = bool(row["answer"])
            yield Case("strategyqa", row["qid"], row["question"], needed, (), yes=yes)


def _hover(data: Path) -> Iterator[Case]:
    by_title: dict[str, Passage] = {}
    for case in (*_two_wiki(data), *_hotpotqa(data)):
        by_title |= {one.title: one for one in (*case.needed, *case.distractors)}
    for row in _json(data / "hover/dev.json.gz"):
        titles = {title for title, _ in row["supporting_facts"]}
        needed = tuple(by_title[title] for title in sorted(titles) if title in by_title)
        if len(needed) == len(titles):
            # The claim and the question it was derived from share their passages.
            yield Case("hover", row.get("hpqa_id") or row["uid"], row["claim"], needed, ())


def _tables(data: Path) -> Iterator[Case]:
    for row in _json(data / "tatqa/dev.json.gz"):
        lines = [" | ".join(cell.strip() for cell in line) for line in row["table"]["table"]]
        table = Passage("", "\n".join(lines))
        texts = {str(one["order"]): Passage("", one["text"]) for one in row["paragraphs"]}
        for one in row["questions"]:
            source, wanted = one["answer_from"], {str(n) for n in one["rel_paragraphs"]}
            needed = [texts[name] for name in sorted(wanted) if name in texts]
            if source == "table":
                needed = [table]
            elif source == "table-text" and one["answer_type"] == "arithmetic":
                needed = [table]  # the text only refers to the table
            elif source == "table-text":
                continue
            others = [passage for passage in (table, *texts.values()) if passage not in needed]
            yield Case("tatqa", row["table"]["uid"], one["question"], tuple(needed), tuple(others))


def _news(data: Path) -> Iterator[Case]:
    corpus = _json(data / "multihop_rag/corpus.json")
    chunks = {
        one["title"]: [
            replace(chunk, text=f"{one['source'] or ''}, {(one['published_at'] or '')[:10]}. "
                    f"{chunk.text}")
            for _, chunk in _chunks(one["title"], one["body"])
        ]
        for one in corpus
    }  # fmt: skip
    for row in _json(data / "multihop_rag/MultiHopRAG.json"):
        needed = []
        for one in row["evidence_list"]:
            words = set(one["fact"].split())
            held = chunks.get(one["title"], [])
            if held:
                needed.append(max(held, key=lambda chunk: len(words & set(chunk.text.split()))))
        needed = list(dict.fromkeys(needed))
        if len(needed) == len(row["evidence_list"]):
            yield Case(
                "multihop_rag", row["query"], row["query"], tuple(needed), (),
                answers=find_answer(row["answer"], needed)[:2], yes=yes_or_no(row["answer"]),
            )  # fmt: skip


def everyday_cases(folder: Path) -> Iterator[Case]:
    """Our own hand-written cases, with their parts."""
    for path in sorted(folder.glob("*.jsonl")):
        for row in read_lines(path):
            needed = tuple(Passage(one["title"], one["text"]) for one in row["docs"])
            others = tuple(Passage(one["title"], one["text"]) for one in row["distractors"])
            source, answers = f"everyday/{path.stem}", find_answer(row["answer"], needed)
            words = normalize_words(row["question"])  # some occur twice
            yes = yes_or_no(row["answer"])
            case = Case(
                source, words, row["question"], needed, others, (), answers[:1], yes,
                titled=titled_passages(row["answer"], needed),
            )  # fmt: skip
            yield _with_part(case)


SOURCES: Mapping[str, Callable[[Path], Iterator[Case]]] = {
    "hotpotqa": _hotpotqa,
    "2wiki": _two_wiki,
    "musique": _musique,
    "squad2": _squad,
    "policyqa": _policies,
    "covidqa": _covid,
    "entailmentbank": _entailment,
    "strategyqa": _strategy,
    "hover": _hover,
    "tatqa": _tables,
    "multihop_rag": _news,
}


def part_of(source: str, group: str) -> str:
    """The part of a case; studies evaluate the reader on `test` and `unseen` only."""
    if source in UNSEEN_SOURCES:
        return UNSEEN
    if source in STACK_SOURCES:
        return STACK
    draw = int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) % 100
    stack, test = (25, 50) if source == "musique" else (12, 20)  # musique is small
    return STACK if draw < stack else TEST if draw < test else LEARN


def _with_part(case: Case) -> Case:
    return replace(case, part=part_of(case.source, case.group))


def load_cases(data: Path, everyday: Sequence[Path]) -> list[Case]:
    """Every case of every source, with its part."""
    cases = [_with_part(case) for load in SOURCES.values() for case in load(data)]
    return cases + [case for folder in everyday for case in everyday_cases(folder)]


def shown_passages(cases: Iterable[Case]) -> set[Passage]:
    """What training may show: passages of `learn`, except those that only questions of other parts
    need.
    """
    shown: set[Passage] = set()
    needed: set[Passage] = set()
    judged: set[Passage] = set()
    for case in cases:
        if case.part == LEARN:
            shown.update(case.needed, case.distractors)
            needed.update(case.needed)
        else:
            judged.update(case.needed)
    return shown - (judged - needed)
