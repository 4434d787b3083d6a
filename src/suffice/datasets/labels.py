"""Labels from people: yes or no for a list of hits, yes or no per hit, or gold ids.

Our own JSON Lines, as written by the page. One kind of label is enough; the others may be null or
missing:

    {"question": "…", "hits": [{"id": "a1", "title": "…", "text": "…", "score": 7.5}],
     "complete": true, "needed": {"a1": true, "b2": false}, "gold": ["a1"],
     "by": "ada", "at": "2026-11-17T11:05:00Z"}

`complete` is about the list of hits, `needed` about each hit, and `gold` names every document that
the question needs, found or not. A later row about the same question and hits replaces the earlier
one. {"undo": true, "question": …, "hits": …, "by": …} takes back that person's last row (without
`by`, anybody's); its hits may be ids. A row whose `complete` is null, without other labels, is a
skipped question and replaces nothing; so is a table's row with an empty cell for the label, and a
trace without feedback. A `by` that starts with "judge:" means that a model gave the
label (`suffice judge`); a person's label for the same list replaces it.

The meaning of per-hit labels: if `complete` is yes and every hit is judged, the needed hits are the
gold. If `complete` is no, they do not tell what is missing. Alone, they mean "incomplete" if no hit
is needed, and otherwise nothing, because nobody said whether a document is missing. Such a label is
skipped, not guessed, and so is a yes about more hits than the gate reads. Labels that contradict
themselves are bad records.

Other formats: ragas rows, CSV and TSV with a header, and exports of traces (LangSmith, Langfuse and
similar) with an input, retrieved documents and a score or thumbs. A thumb is usually about the
answer, so a wrong answer from complete evidence counts as incomplete.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from suffice.errors import InputError, did_you_mean
from suffice.gate.hits import UNNAMED_ID_PREFIX, DocumentMap, normalize_hits
from suffice.gate.training import LabelledQuestion
from suffice.storage import BadRecords, Record, read_json_records, read_lines, readable_file
from suffice.storage.fields import content_id, field_error, is_text, optional_text, optional_texts
from suffice.storage.records import SKIP_HINT, parse_records, read_table
from suffice.types import DocId

__all__ = [
    "Label",
    "LabelHistory",
    "LabelledExamples",
    "Undo",
    "parse_label",
    "parse_labels",
    "read_labels",
    "read_lists",
    "read_questions",
    "to_examples",
]

# Names of a field in other formats, most likely first.
QUESTION_NAMES = ("question", "user_input", "query", "input", "inputs", "prompt")
HITS_NAMES = (
    "hits", "retrieved_contexts", "retrieval_context", "contexts", "retrieved_documents",
    "source_documents", "documents", "docs", "chunks", "context",
)  # fmt: skip
COMPLETE_NAMES = ("complete", "is_complete", "sufficient", "label")
FEEDBACK_NAMES = (
    "feedback", "user_feedback", "feedback_stats", "scores", "score", "user_score", "thumbs",
    "rating", "value",
)  # fmt: skip
GOLD_NAMES = ("gold", "gold_ids", "needed", "reference_context_ids", "reference_contexts")
TRACE_NAMES = ("outputs", "output", "inputs", "input")
INNER_NAMES = (*TRACE_NAMES, "metadata")  # objects in a trace
SCORE_NAMES = ("key", "name")  # of a score in a list of scores
VALUE_NAMES = ("score", "value", "avg")
YES = {"yes", "y", "true", "t", "1", "up", "thumbs_up", "thumbsup", "like", "good", "positive",
       "complete", "sufficient", "correct", "pass", "\N{THUMBS UP SIGN}"}  # fmt: skip
NO = {"no", "n", "false", "f", "0", "-1", "down", "thumbs_down", "thumbsdown", "dislike", "bad",
      "negative", "incomplete", "insufficient", "incorrect", "fail",
      "\N{THUMBS DOWN SIGN}"}  # fmt: skip
TABLES = (".csv", ".tsv")
DELIMITERS = ",;\t"  # Excel writes semicolons where the comma is a decimal point
TABLE_COLUMNS = {
    "by", "at", *QUESTION_NAMES, *HITS_NAMES, *COMPLETE_NAMES, *FEEDBACK_NAMES, *GOLD_NAMES
}  # fmt: skip
JUDGED_BY = "judge:"  # prefix of `by` if a judge gave the label
MIN_COMPARED = 10  # lists labelled by judge and person, to doubt the judge's other labels
PER_HIT_ONLY = "per-hit labels alone do not say whether a document is missing"
EXPECTED = "a label: 'complete' (yes or no), 'needed' (yes or no per hit) or 'gold' (ids)"


@dataclass(frozen=True, slots=True)
class Label:
    """One label for a question and its hits."""

    question: str
    hits: tuple[Mapping[str, Any], ...]  # id, title, text, score
    complete: bool | None = None  # None: not given
    needed: Mapping[DocId, bool] = field(default_factory=dict, hash=False)  # of the judged hits
    gold: frozenset[DocId] | None = None  # every needed document; None: unknown
    by: str = ""
    at: str = ""
    where: str = ""
    judge_said: bool | None = None  # a judge's label for the same list as a person's

    @property
    def is_judged(self) -> bool:
        """Whether a judge gave it, not a person."""
        return self.by.startswith(JUDGED_BY)

    @property
    def says_anything(self) -> bool:
        return self.complete is not None or bool(self.needed) or self.gold is not None

    @property
    def hit_ids(self) -> frozenset[DocId]:
        return frozenset(hit["id"] for hit in self.hits)

    @property
    def known_gold(self) -> frozenset[DocId] | None:
        """Every needed document, if the label states or implies it."""
        if self.gold is None and self.complete and self.hit_ids <= self.needed.keys():
            return frozenset(name for name, yes in self.needed.items() if yes)
        return self.gold

    @property
    def is_complete(self) -> bool | None:
        """Whether the hits contain every needed document; None if unknown."""
        if self.gold is not None:
            return bool(self.gold) and self.gold <= self.hit_ids
        if self.complete is None and self.hits and self.hit_ids <= self.needed.keys():
            return None if any(self.needed.values()) else False
        return self.complete


@dataclass(frozen=True, slots=True)
class Undo:
    """Take back the last label for a question and its hits: one person's, or anybody's."""

    question: str
    hit_ids: tuple[frozenset[DocId], ...]  # plain strings are ids, or texts without one
    by: str = ""

    def means(self, label: Label) -> bool:
        return label.hit_ids in self.hit_ids and self.by in ("", label.by)


class LabelHistory:
    """The labels that still apply, in order, by a number that the caller chooses."""

    def __init__(self) -> None:
        self.labels: dict[int, Label] = {}
        self._of_question: dict[str, list[int]] = {}

    def add(self, number: int, said: Label | Undo) -> None:
        numbers = self._of_question.setdefault(said.question, [])
        if isinstance(said, Label):
            self.labels[number] = said
            numbers.append(number)
            return
        for at in reversed(numbers):
            if said.means(self.labels[at]):
                numbers.remove(at)
                del self.labels[at]
                return


@dataclass(frozen=True, slots=True)
class LabelledExamples:
    """The examples that a gate can learn from, and why other labels were skipped."""

    examples: tuple[LabelledQuestion, ...]
    left_out: tuple[str, ...] = ()


def read_labels(
    path: Path, *, bad: BadRecords | None = None, score: str | None = None
) -> list[Label]:
    """The labels in a JSON Lines, JSON, CSV or TSV file, one per question and hits.

    `score` names the feedback to use if a trace has several.
    """
    bad, path = BadRecords() if bad is None else bad, Path(path)
    score = _column(score) if score is not None and _is_table(path) else score
    found = parse_labels(_read_rows(path, bad), bad=bad, score=score)
    if score is not None and not found:
        names = set(_score_names(_read_rows(path, BadRecords(skip=True))))
        raise InputError(f"{path} has no score {score!r}", hint=did_you_mean(score, names))
    return found


def read_lists(path: Path, *, bad: BadRecords | None = None) -> list[Label]:
    """The questions in such a file with their hits, labelled or not."""
    bad = BadRecords() if bad is None else bad

    def parse(record: Record) -> Label:
        question = _question(record)
        hits, _ = _hits(record, question)
        return Label(question, hits, where=record.where)

    found = parse_records(_read_rows(Path(path), bad), bad, parse)
    return list({(one.question, one.hit_ids): one for one in found}.values())


def read_questions(path: Path, *, limit: int = 10_000) -> list[str]:
    """The first questions in a file, without duplicates: one per line, or rows like labels or logs.

    Invalid JSON lines are skipped: the last one of a log may be incomplete.
    """
    path, bad = readable_file(Path(path)), BadRecords(skip=True)
    lines = (one.text.strip() for one in read_lines(path, BadRecords()))
    first = next(filter(None, lines), "")
    if first.startswith(("{", "[")) or _is_table(path):
        texts: Iterable[str] = parse_records(_read_rows(path, bad), bad, _question)
    else:
        texts = (one.text.strip() for one in read_lines(path, BadRecords()))
    found = list(islice(dict.fromkeys(filter(None, texts)), limit))
    if not found:
        hint = 'one question a line, or JSON Lines like {"question": "..."}'
        raise InputError(f"{path} has no questions", hint=hint)
    return found


def parse_labels(
    records: Iterable[Record], *, bad: BadRecords | None = None, score: str | None = None
) -> list[Label]:
    """The labels in these rows. Later ones replace earlier ones; an undo takes one back."""
    bad, history = BadRecords() if bad is None else bad, LabelHistory()
    rows = parse_records(records, bad, lambda record: parse_label(record, score))
    for number, said in enumerate(rows):
        history.add(number, said)
    of_list: dict[tuple[str, frozenset[DocId]], list[Label]] = {}
    for label in history.labels.values():
        if label.says_anything:
            of_list.setdefault((label.question, label.hit_ids), []).append(label)
    return [_decide(said) for said in of_list.values()]


def _decide(history: Sequence[Label]) -> Label:
    """The last label for a list; a person's overrides a judge's."""
    people = [one for one in history if not one.is_judged]
    judged = [one for one in history if one.is_judged]
    if not people:
        return judged[-1]
    return replace(people[-1], judge_said=judged[-1].is_complete if judged else None)


@dataclass(frozen=True, slots=True)
class JudgedLabels:
    """Labels given by a judge, and their agreement with people's labels for the same lists.

    `used` is 0 if they were skipped because they agree no better than chance.
    """

    given: int
    compared: int
    agreed: int
    expected: float  # agreements expected by chance
    used: int

    @property
    def sentence(self) -> str:
        start = f"{self.given:,} labels are a judge's"
        if not self.compared:
            return f"{start}; none of them can be compared with a person's"
        found = f"{self.agreed:,} of {self.compared:,} agree with a person's"
        found += f" ({self.expected:.0f} would by chance)"
        return f"{start}; {found}" + ("" if self.used else ": they are left out")

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}


def check_judged(
    labels: Sequence[Label], *, promise: bool = False
) -> tuple[list[Label], JudgedLabels | None]:
    """The labels to learn from, and statistics of a judge's labels; None if there are none.

    If people labelled some of the same lists and the judge agrees no better than chance, its other
    labels are skipped. A promise uses people's labels only.
    """
    pairs = [(one.is_complete, one.judge_said) for one in labels if one.judge_said is not None]
    both = [(yes, said) for yes, said in pairs if yes is not None]
    judged = [one for one in labels if one.is_judged]
    if not judged and not both:
        return list(labels), None
    if promise and judged:
        raise InputError(
            f"{len(judged):,} of {len(labels):,} labels are a judge's: a promise needs people's",
            hint="leave out alpha (on the command line: --alpha), or the judge's labels",
        )
    agreed, count = sum(yes == said for yes, said in both), len(both)
    yes, said = (sum(one[side] for one in both) / max(count, 1) for side in (0, 1))
    chance = yes * said + (1 - yes) * (1 - said)
    spread = math.sqrt(max(count * chance * (1 - chance), 0.0))
    doubted = count >= MIN_COMPARED and agreed <= count * chance + spread
    found = JudgedLabels(len(judged), count, agreed, count * chance, 0 if doubted else len(judged))
    return [one for one in labels if not (doubted and one.is_judged)], found


def to_examples(
    labels: Sequence[Label], *, k: int, documents: DocumentMap | None = None
) -> LabelledExamples:
    """Training examples from the labels, for a gate that reads `k` hits.

    `documents` has the texts of hits that are only ids.
    """
    found, left_out = [], []
    options: Any = {"documents": documents or {}}
    for label in labels:
        bare = sorted(hit["id"] for hit in label.hits if "text" not in hit)
        if unknown := [name for name in bare if name not in options["documents"]]:
            raise InputError(
                f"{label.where}: hit {unknown[0]!r} has no text",
                hint="give each hit its text (in Python also documents=, on the command line "
                "--library)",
            )
        if (gold := label.known_gold) is not None:
            found.append(LabelledQuestion(label.question, label.hits, gold, **options))
        elif (complete := label.is_complete) is None:
            left_out.append(f"{label.where}: {PER_HIT_ONLY}")
        elif complete and _distinct(label) > k:
            read = f"the gate reads the first {k} of {len(label.hits)} hits"
            left_out.append(f"{label.where}: {read}, and yes is about all of them")
        else:
            yes_or_no = LabelledQuestion(label.question, label.hits, complete=complete, **options)
            found.append(yes_or_no)
    return LabelledExamples(tuple(found), tuple(left_out))


def _distinct(label: Label) -> int:
    return len(normalize_hits(label.question, label.hits).evidence.hits)


# ------------------------------------------------------------------------------------ one row


def parse_label(record: Record, score: str | None = None) -> Label | Undo:
    """The label in one row; InputError if it has none, or contradicts itself."""
    complete, marks = _complete(record, score)
    gold = _gold(record)
    try:
        question = _question(record)
        by, at = (optional_text(record, name) or "" for name in ("by", "at"))
        if record.value.get("undo") is True:
            return Undo(question, _undone_ids(record, question), by)
        hits, judged = _hits(record, question)
    except InputError:
        if _is_trace(record) and complete is None and gold is None:
            return Label("", ())  # a step without documents, and without feedback
        raise
    label = Label(question, hits, complete, {**judged, **marks}, gold, by, at, record.where)
    _check_consistent(label, record)
    return label


def _is_trace(record: Record) -> bool:
    return any(isinstance(record.value.get(name), Mapping | list) for name in TRACE_NAMES)


def _is_unlabelled(record: Record) -> bool:
    """Whether it is no error that it has no label: the field is empty, or it is a trace."""
    names = (*COMPLETE_NAMES, *FEEDBACK_NAMES)
    return _is_trace(record) or any(name in record.value for name in names)


def _undone_ids(record: Record, question: str) -> tuple[frozenset[DocId], ...]:
    found = [frozenset(hit["id"] for hit in _hits(record, question)[0])]
    listed = record.value.get("hits")
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        found.append(frozenset(listed))
    return tuple(found)


def _check_consistent(label: Label, record: Record) -> None:
    """Raise InputError if the label is empty or contradicts itself."""
    if unknown := sorted(label.needed.keys() - label.hit_ids):
        raise field_error(record, "needed", f"ids of the hits; {unknown[0]!r} is none")
    if not label.says_anything and not _is_unlabelled(record):
        raise _missing(record, "complete", EXPECTED, (*COMPLETE_NAMES, *FEEDBACK_NAMES))
    problem, all_judged = "", label.hit_ids <= label.needed.keys()
    if label.complete and not label.hits:
        problem = "complete is yes, but there are no hits"
    elif label.complete and all_judged and not any(label.needed.values()):
        problem = "complete is yes, but no hit is needed"
    elif label.gold is not None and label.complete not in (None, label.is_complete):
        held = "all" if label.is_complete else "not all"
        said = "yes" if label.complete else "no"
        problem = f"complete is {said}, but the documents of gold are {held} among the hits"
    elif label.gold is not None:
        wrong = sorted(name for name, yes in label.needed.items() if yes != (name in label.gold))
        problem = f"needed and gold disagree about {wrong[0]!r}" if wrong else ""
    if problem:
        hint = "label it again or leave it out (on the command line: --skip-bad)"
        raise InputError(f"{record.where}: {problem}", hint=hint)


def _question(record: Record) -> str:
    for level in _levels(record.value):
        for name in QUESTION_NAMES:
            value = level.get(name)
            if isinstance(value, Mapping):
                value = _first(value, QUESTION_NAMES) or value.get("messages")
            if isinstance(value, list):
                value = _last_message(value)
            if is_text(value) and value.strip():
                return value.strip()
    raise _missing(record, "question", "a text that is not empty", QUESTION_NAMES)


def _last_message(messages: Sequence[Any]) -> Any:
    """The user's last message in a list of chat messages."""
    for one in reversed(messages):
        if isinstance(one, Mapping) and one.get("role", one.get("type")) in ("user", "human"):
            return one.get("content")
    return None


def _hits(record: Record, question: str) -> tuple[tuple[Mapping[str, Any], ...], dict[DocId, bool]]:
    """The hits in a row, and the `needed` labels that hits have themselves."""
    value = None
    for level in _levels(record.value):
        value = _first(level, HITS_NAMES)
        if value is None and level is record.value:
            value = next((level[one] for one in INNER_NAMES[:2] if _is_list(level.get(one))), None)
        if value is not None:
            break
    if isinstance(value, str):
        value = [value]  # a single text, as in a table cell
    if not isinstance(value, list):
        raise _missing(record, "hits", "a list of hits (empty for none)", HITS_NAMES)
    ids = record.value.get("retrieved_context_ids")
    if isinstance(ids, list) and len(ids) == len(value):
        value = [{"id": name, "text": one} for name, one in zip(ids, value)]
    hits: dict[DocId, Mapping[str, Any]] = {}
    judged: dict[DocId, bool] = {}
    for place, one in enumerate(value, start=1):
        try:
            evidence = normalize_hits(question, [one]).evidence
        except InputError as error:
            problem = str(error).replace("hit 1", f"hit {place}", 1)
            raise InputError(f"{record.where}: {problem}", hint=error.hint or SKIP_HINT) from error
        (hit,) = evidence.hits
        document = evidence.documents[hit.doc_id]
        name = hit.doc_id
        if name.startswith(UNNAMED_ID_PREFIX):
            name = content_id(document.title, document.text)
        # A hit without text is a document in the library.
        text = {"text": document.text} if document.text or document.title else {}
        hits.setdefault(name, {"id": name, "title": document.title, **text, "score": hit.score})
        if isinstance(one, Mapping) and one.get("needed") is not None:
            judged[name] = _yes_or_no(one["needed"], record, "needed")
    return tuple(hits.values()), judged


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str | Mapping) for one in value)


def _complete(record: Record, score: str | None) -> tuple[bool | None, dict[DocId, bool]]:
    """Yes or no for the whole list, and for each hit."""
    row, needed = record.value, {}
    if isinstance(row.get("needed"), Mapping):
        items = row["needed"].items()
        needed = {
            str(name): _yes_or_no(yes, record, "needed") for name, yes in items if yes is not None
        }
    if score is None and (value := _first(row, COMPLETE_NAMES)) is not None:
        return _yes_or_no(value, record, "complete"), needed
    for level in _levels(row):
        for name in FEEDBACK_NAMES:
            value = level.get(name)
            if isinstance(value, Mapping) and not value.keys() & set(VALUE_NAMES):
                value = _one_of(value, record, name, score)
            elif isinstance(value, list):
                value = _one_of(_named_scores(value), record, name, score)
            elif score is not None and name != score:
                value = None
            if isinstance(value, Mapping):
                value = _first(value, VALUE_NAMES)
            if value is not None:
                return _yes_or_no(value, record, name), needed
        if score is not None and level.get(score) is not None:
            return _yes_or_no(level[score], record, score), needed
    return None, needed


def _named_scores(scores: Sequence[Any]) -> dict[str, Any]:
    """The scores in a list by name; the last one counts."""
    found = {}
    for one in scores:
        if isinstance(one, Mapping):
            found[str(_first(one, SCORE_NAMES) or "score")] = _first(one, VALUE_NAMES)
    return found


def _score_names(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        for level in _levels(record.value):
            for value in filter(None, map(level.get, FEEDBACK_NAMES)):
                if isinstance(value, list):
                    yield from _named_scores(value)
                elif isinstance(value, Mapping):
                    yield from map(str, value)


def _one_of(scores: Mapping[str, Any], record: Record, name: str, wanted: str | None) -> Any:
    """The score to use: the wanted one, the one for completeness, or the only one."""
    known = {key: value for key, value in scores.items() if value is not None}
    if wanted is not None:
        return known.get(wanted)
    if (value := _first(known, COMPLETE_NAMES)) is not None:
        return value
    if len(known) > 1:
        raise InputError(
            f"{record.where}: field '{name}' has several scores: {', '.join(sorted(known))}",
            hint="keep the one that tells whether the hits are complete (on the command line: "
            f"--score {sorted(known)[0]})",
        )
    return next(iter(known.values()), None)


def _yes_or_no(value: Any, record: Record, name: str) -> bool:
    if isinstance(value, bool):
        return value
    text = f"{value:g}" if isinstance(value, int | float) else value
    if isinstance(text, str):
        word = text.strip().casefold().replace(" ", "_").replace("-up", "_up")
        word = word.replace("-down", "_down").removesuffix(".0")
        if word in YES or word in NO:
            return word in YES
    expected = "yes or no (also true, 1 or up; false, 0, -1 or down)"
    raise InputError(
        f"{record.where}: field '{name}' is {value!r:.60}, expected {expected}", hint=SKIP_HINT
    )


def _gold(record: Record) -> frozenset[DocId] | None:
    for name in GOLD_NAMES:
        value = record.value.get(name)
        if value is None or isinstance(value, Mapping):  # `needed` may be per hit
            continue
        if isinstance(value, str):  # a table cell
            value = [one.strip() for one in value.replace("|", ";").split(";") if one.strip()]
        texts = optional_texts(Record({name: value}, record.where), name)
        made = name == "reference_contexts"
        return frozenset(content_id("", one) if made else one for one in texts)
    return None


# ------------------------------------------------------------------------------------ any row


def _levels(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The row, and the objects of a trace inside it."""
    yield row
    for name in INNER_NAMES:
        if isinstance(row.get(name), Mapping):
            yield row[name]


def _first(level: Mapping[str, Any], names: Collection[str]) -> Any:
    return next((level[name] for name in names if level.get(name) is not None), None)


def _missing(record: Record, name: str, expected: str, names: Sequence[str]) -> InputError:
    has = ", ".join(map(str, list(record.value)[:12])) or "nothing"
    message = f"{record.where}: field '{name}' is missing, expected {expected}; it has: {has}"
    return InputError(message, hint=f"name it like one of these: {', '.join(names)}")


def _is_table(path: Path) -> bool:
    return path.suffix.casefold() in TABLES


def _read_rows(path: Path, bad: BadRecords) -> Iterable[Record]:
    """The rows of a JSON Lines, JSON, CSV or TSV file."""
    if not _is_table(path):
        return read_json_records(path, bad)
    lines = (line.text for line in read_lines(path, BadRecords()))
    delimiter = max(DELIMITERS, key=next(filter(str.strip, lines), "").count)
    return map(_with_values, read_table(path, bad, delimiter=delimiter))


def _with_values(record: Record) -> Record:
    """A table row: empty cells are null, JSON in cells is parsed, "Question" is "question"."""
    cells = {
        _column(name): _cell(text) if text.strip() else None for name, text in record.value.items()
    }
    return Record(cells, record.where)


def _column(name: str) -> str:
    known = name.strip().casefold().replace(" ", "_")
    return known if known in TABLE_COLUMNS else name


def _cell(text: str) -> Any:
    if text.lstrip()[:1] in ("{", "["):
        for read in (json.loads, ast.literal_eval):  # pandas writes a list as Python does
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                return read(text)
    return text  # it may start with a bracket
