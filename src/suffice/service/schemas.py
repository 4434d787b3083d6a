"""Request and response models, as OpenAPI shows them. Unknown fields are errors, except in hits."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from suffice.gate.evidence_graph import EvidenceGraph
from suffice.service.labelling import MAX_QUESTION_CHARS
from suffice.service.settings import DEFAULT_GATE
from suffice.types import Action, JudgeReport, Quote, Reason, RetrieverScore

T = TypeVar("T")
MAX_HITS = 1000  # per question; the gate reads the first few
MAX_DOCUMENTS = 1000  # per write
MAX_LABELS = 2000  # per request to /v1/adapt
_HIT: dict[str, JsonValue] = {
    "doc_id": "navigator",
    "title": "The Navigator (1924 film)",
    "text": "The Navigator is a 1924 comedy directed by Buster Keaton.",
    "score": 8.0,
}
_HIT_TEXTS = {name: _HIT[name] for name in ("title", "text", "score")}
_CHECK: dict[str, JsonValue] = {
    "question": "Which film came out first, The Navigator or Metropolis?",
    "hits": [_HIT],
}
_DIRECTORS = "Which film has the director born first, Shadows in Paradise or Dog Law?"

Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS, pattern=r"\S")]
GateName = Annotated[str, Field(max_length=64, description="A gate of /v1/gates.")]
RetrieverName = Annotated[str | None, Field(max_length=64, description="One of /v1/library.")]
# Not any name: in Python, a name may also be the path of a folder.
RerankerName = Annotated[
    Literal["reader"] | None,
    Field(description="bridge: the gate's reader reads the first hits again; slower."),
]


def _example(**values: JsonValue) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [values]})


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# Checks


class HitInput(TypedDict, total=False):
    """A hit: its text, or only the id of a document in the library. Common aliases also work."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    doc_id: str | int
    text: str
    title: str | None
    score: float | None
    source: str | None
    category: str | None
    published_at: str | None
    entities: list[str]


Hits = Annotated[
    list[str | HitInput],
    Field(max_length=MAX_HITS, description="Best first; texts or objects."),
]


class _Evidence(_StrictModel):
    question: Question
    hits: Hits


class CheckRequest(_Evidence):
    model_config = _example(**_CHECK)

    gate: GateName = DEFAULT_GATE
    explain: bool = Field(True, description="Include reasons, missing, next_queries.")
    rounds_left: int = Field(1, ge=0, le=1000, description="Expansions that may still follow.")
    graph: bool = Field(False, description="Include the evidence graph.")


class BatchLine(_Evidence):
    """One line of a batch; `question_id` is returned with its verdict."""

    model_config = _example(question_id="q1", **_CHECK)

    question_id: Annotated[str, Field(max_length=1000)] | int | None = None


class VerdictResponse(BaseModel):
    """The verdict. `low` and `high` bound p_complete; `graph` only if requested.

    If `unfamiliar` is not empty, such questions or hits are unfamiliar to the gate.
    """

    action: Action
    p_complete: float
    low: float
    high: float
    missing: list[str]
    next_queries: list[str]
    reasons: list[Reason]
    familiarity: float = Field(description="How like the training questions and hits, 0 to 1.")
    unfamiliar: list[str] = Field(description="Where familiarity is low: why, in sentences.")
    quotes: list[Quote] = Field(description="Sentences that seem to be evidence, likeliest first.")
    notes: list[str] = Field(description="What was not read of question and hits, in sentences.")
    judged: JudgeReport | None = Field(None, description="What a judge said; null: none was asked.")
    graph: EvidenceGraph | None = None


class GateResponse(BaseModel):
    name: str
    preset: str
    k: int = Field(description="Number of hits it reads.")
    fitted_on: int = Field(description="Number of questions.")
    policy: dict[str, Any]
    metrics: dict[str, Any]
    history: list[str]
    drift: str | None = Field(description="Drift seen by this worker; null if too few checks.")
    drift_checks: int = Field(description="Recent checks of this worker that it is measured on.")
    judge: str | None = Field(description="The judge behind it; null: none.")


class FeatureDriftResponse(BaseModel):
    feature: str
    meaning: str
    psi: float = Field(description="Population stability index: 0.25 or more is much.")
    ks: float = Field(description="Kolmogorov-Smirnov distance.")


class AdaptRequest(_StrictModel):
    """Labels as in a file for `suffice adapt`, and the name of the new gate."""

    model_config = _example(name="news", labels=[{**_CHECK, "complete": False}])

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    labels: list[dict[str, JsonValue]] = Field(max_length=MAX_LABELS)
    gate: GateName = DEFAULT_GATE
    alpha: float | None = Field(None, gt=0, lt=1, description="Promise: incomplete answers.")
    force: bool = Field(False, description="Write it even if it is not better.")


class AdaptResponse(BaseModel):
    """The gain of the new gate on labels it had not seen. Shares and AUROC have intervals."""

    name: str
    written: bool = Field(description="Whether it is better, or forced: it is in the folder then.")
    left_out: list[str] = Field(description="Labels that say nothing about completeness, and why.")
    next: str
    labels: int
    complete: int
    is_better: bool
    verdict: str
    before: dict[str, Any]
    after: dict[str, Any]
    gain: dict[str, float | None] = Field(description="By how much the Brier score falls.")
    forecasts: list[dict[str, Any]] = Field(description="With more labels; none: too noisy.")
    alpha: float
    promise_labels: int | None = Field(description="Labels that a promise of alpha takes.")
    judged_labels: dict[str, Any] | None = Field(
        description="Labels that a judge gave, beside people's; null: there are none."
    )
    policy: dict[str, Any]


class DriftResponse(BaseModel):
    gate: str
    questions: int
    features: list[FeatureDriftResponse]
    actions_then: dict[str, float]
    actions_now: dict[str, float]
    recalibrate: bool
    words: str


class ReportResponse(BaseModel):
    run: dict[str, Any] | None = Field(description="Summary of the --report run, or null.")
    drift: list[DriftResponse] = Field(description="Of each gate with enough checks.")
    drift_checks: int = Field(description="Recent checks of this worker, of its busiest gate.")
    drift_from: int = Field(description="From so many checks on, drift is measured.")


# Labels


LABELLER: Any = {"min_length": 1, "max_length": 64, "pattern": r"\S", "description": "Who labels."}
Labeller = Annotated[str, Field(**LABELLER)]


class LabelHit(_StrictModel):
    id: str
    title: str = ""
    text: str = ""
    score: float | None = Field(None, allow_inf_nan=False)


class LabelItemResponse(BaseModel):
    question: str
    hits: list[LabelHit] = Field(description="Best first; those that the gate reads.")


class LabelRequest(_StrictModel):
    """An answer, with its question and hits."""

    model_config = _example(
        by="ada",
        question=_CHECK["question"],
        hits=[{**_HIT_TEXTS, "id": "navigator"}],
        complete=False,
        needed={"navigator": True},
    )

    by: Labeller
    question: Question
    hits: list[LabelHit] = Field(min_length=1, max_length=MAX_HITS)
    complete: bool | None = Field(description="Are the hits enough? null: skipped.")
    needed: dict[str, bool] = Field({}, description="By hit id; optional.")


class UndoRequest(_StrictModel):
    model_config = _example(by="ada")

    by: Labeller


class LabelProgressResponse(BaseModel):
    labelled: int = Field(description="Questions with an answer, by anybody.")
    complete: int = Field(description="Of these, how many are complete.")
    skipped: int = Field(description="By you.")
    left: int = Field(description="To label or skip, for you.")
    enough: int = Field(description="Labels from which adapting is worth it.")
    adapt: str | None = Field(description="The command that uses the labels; null: too few yet.")


class LabelResponse(BaseModel):
    """The next item to label for this person; `item` is null if nothing is left."""

    item: LabelItemResponse | None
    progress: LabelProgressResponse
    stored: bool = Field(description="Whether this request added a line to the labels.")


# Library


FilterForm = Annotated[
    Literal["auto"] | dict[str, Any] | None,
    Field(description='A metadata filter; "auto": what the question names.'),
]
Strict = Annotated[bool, Field(description="Never relax the filter.")]
StrictUnlessAuto = Annotated[
    bool | None,
    Field(description='Whether to read nothing else; null: yes, unless the filter is "auto".'),
]


class SearchRequest(_StrictModel):
    model_config = _example(question=_DIRECTORS, k=5)

    question: Question
    k: int = Field(10, ge=1, le=100)
    retriever: RetrieverName = None
    reranker: RerankerName = None
    filter: FilterForm = None
    strict: Strict = False
    texts: bool = Field(True, description="Include the texts of the documents.")


class DocumentResponse(BaseModel):
    doc_id: str
    text: str | None
    title: str
    source: str | None
    category: str | None
    published_at: date | None
    entities: list[str]


class HitResponse(DocumentResponse):
    score: float | None
    parts: list[RetrieverScore] = Field(description="The retrievers that found it.")
    matched: list[str] = Field(description="Metadata of the question that it matches.")
    relaxed: bool = Field(description="It does not pass the filter, which was relaxed.")


class SearchResponse(BaseModel):
    hits: list[HitResponse]


class CompleteRequest(_StrictModel):
    model_config = _example(question=_DIRECTORS, k=6)

    question: Question
    k: int = Field(10, ge=1, le=50, description="Maximum number of documents.")
    rounds: int = Field(12, ge=0, le=50)
    retriever: RetrieverName = None
    reranker: RerankerName = None
    filter: FilterForm = None
    strict: StrictUnlessAuto = None
    gate: GateName = DEFAULT_GATE
    texts: bool = True


class RoundResponse(BaseModel):
    p_complete: float
    held: list[str]
    looked_for: str
    note: str


class CompletionResponse(BaseModel):
    hits: list[HitResponse]
    verdict: VerdictResponse
    stopped: str
    checks: int
    rounds: list[RoundResponse]


class AskRequest(_StrictModel):
    model_config = _example(question=_DIRECTORS, rounds=6)

    question: Question
    gate: GateName = DEFAULT_GATE
    retriever: RetrieverName = None
    filter: FilterForm = None
    strict: StrictUnlessAuto = None
    with_model: bool = Field(True, description="Use the service's language model, if it has one.")
    rounds: int = Field(12, ge=0, le=50)
    calls: int = Field(40, ge=0, le=200)
    tokens: int = Field(100_000, ge=0, le=1_000_000)
    seconds: float | None = Field(None, gt=0, le=3600, description="Up to the service's limit.")


class LibraryResponse(BaseModel):
    documents: int
    generation: int
    encoder: str | None
    retrievers: list[str]


class DocumentRequest(_StrictModel):
    doc_id: str = Field(min_length=1, max_length=1000)
    text: str
    title: str = ""
    source: str | None = None
    category: str | None = None
    published_at: Annotated[date, Field(strict=False)] | None = None
    entities: list[str] = Field([], max_length=1000)
    parent: str | None = None


class DocumentsRequest(_StrictModel):
    model_config = _example(
        documents=[{"doc_id": "ada", "title": "Ada", "text": "Ada was taught by Mary."}]
    )

    documents: list[DocumentRequest] = Field(min_length=1, max_length=MAX_DOCUMENTS)


class WriteResponse(BaseModel):
    written: int
    documents: int
    generation: int


class HealthResponse(BaseModel):
    status: str
    version: str


# Envelope


class ErrorDetail(BaseModel):
    code: str = Field(description="A code for programs.")
    message: str
    hint: str = Field(description="What to do about it; may be empty.")


class Envelope(BaseModel, Generic[T]):
    """Every result."""

    ok: Literal[True]
    data: T
    error: None
    request_id: str


class ErrorResponse(BaseModel):
    """Every error."""

    ok: Literal[False]
    data: None
    error: ErrorDetail
    request_id: str


class BatchResponse(BaseModel):
    """One result line of a batch, in the order of the questions."""

    line: int
    question_id: str | int | None
    ok: bool
    data: VerdictResponse | None
    error: ErrorDetail | None
