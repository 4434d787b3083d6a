"""The forms of requests and answers, as OpenAPI shows them. What a form does not know is refused, in hits it is passed on."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from suffice.service.settings import DEFAULT_GATE, Limits

__all__ = [
    "AskRequest",
    "BatchLine",
    "BatchResponse",
    "CheckRequest",
    "CompleteRequest",
    "CompletionResponse",
    "DocumentRequest",
    "DocumentResponse",
    "DocumentsRequest",
    "Envelope",
    "ErrorResponse",
    "GateResponse",
    "HealthResponse",
    "HitInput",
    "HitResponse",
    "LibraryResponse",
    "ReportResponse",
    "SearchRequest",
    "SearchResponse",
    "TraceResponse",
    "VerdictResponse",
    "WriteResponse",
]

T = TypeVar("T")
_LIMITS = Limits()
_FILM = "Which film came out first, The Navigator or Metropolis?"
_HIT: dict[str, JsonValue] = {
    "doc_id": "navigator",
    "title": "The Navigator (1924 film)",
    "text": "The Navigator is a 1924 comedy directed by Buster Keaton.",
    "score": 8.0,
}
_DIRECTORS = "Which film has the director born first, Shadows in Paradise or Dog Law?"

Question = Annotated[
    str,
    Field(min_length=1, max_length=10_000, pattern=r"\S", description="The question, in words."),
]
GateChoice = Annotated[str, Field(max_length=64, description="A gate of /v1/gates.")]
Retriever = Annotated[
    str | None,
    Field(max_length=64, description="A retriever of /v1/library; none: the one that suits."),
]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# --------------------------------------------------------------------------------------------------------------- checks


class HitInput(TypedDict, total=False):
    """A hit: its text, or only the id of a document of the library. Other names for the fields are understood, too."""

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
    Field(max_length=_LIMITS.hits, description="Best first; texts or objects."),
]
Others = Annotated[
    list[Hits], Field(max_length=16, description="What other retrievers found, a list each.")
]


class CheckRequest(_StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"question": _FILM, "hits": [_HIT]}]})

    question: Question
    hits: Hits
    others: Others = []
    gate: GateChoice = DEFAULT_GATE
    explain: bool = Field(True, description="Also reasons, what is missing and what to look for.")
    rounds_left: int = Field(1, ge=0, le=1000, description="Expansions that may still follow.")
    draw: bool = Field(
        False, description="Also what the question names, which hits hold it, and what links them."
    )


class BatchLine(_StrictModel):
    """One line of a batch; `question_id` comes back with its verdict."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question_id": "q1", "question": _FILM, "hits": [_HIT]}]}
    )

    question: Question
    hits: Hits
    others: Others = []
    question_id: Annotated[str, Field(max_length=1000)] | int | None = None


class ReasonResponse(BaseModel):
    feature: str
    effect: float
    words: str


class GraphNameResponse(BaseModel):
    """Something that the question names, where it stands there, and the hits that hold it."""

    text: str
    start: int
    end: int
    held_by: list[str]


class GraphGapResponse(BaseModel):
    """Something that is missing, and the hits that lead on to it."""

    text: str
    mentioned_by: list[str]
    asked: bool


class EvidenceGraphResponse(BaseModel):
    """What connects, and what dangles. A link goes from the hit that mentions to the one whose title it mentions."""

    hits: list[str]
    names: list[GraphNameResponse]
    links: list[tuple[str, str]]
    loose: list[GraphGapResponse]


class VerdictResponse(BaseModel):
    """The gate's answer. `low` and `high` bound p_complete; a drawing comes with `draw` only."""

    action: Literal["answer", "expand", "abstain"]
    p_complete: float
    low: float
    high: float
    missing: list[str]
    next_queries: list[str]
    reasons: list[ReasonResponse]
    drawing: EvidenceGraphResponse | None = None


class GateResponse(BaseModel):
    name: str
    preset: str
    k: int = Field(description="Hits that it reads.")
    fitted_on: int = Field(description="Questions.")
    policy: dict[str, Any]
    metrics: dict[str, Any]
    history: list[str]
    drift: str | None = Field(
        description="What this worker has seen of drift; none while it has seen too little."
    )


class DriftResponse(BaseModel):
    gate: str
    questions: int
    features: list[dict[str, Any]] = Field(
        description="Most moved first: psi (0.25: much) and Kolmogorov's distance."
    )
    actions_then: dict[str, float]
    actions_now: dict[str, float]
    recalibrate: bool
    words: str


class ReportResponse(BaseModel):
    run: dict[str, Any] | None = Field(
        description="The run of --report at a glance; null without one."
    )
    drift: list[DriftResponse]


# -------------------------------------------------------------------------------------------------------------- library


class SearchRequest(_StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"question": _DIRECTORS, "k": 5}]})

    question: Question
    k: int = Field(10, ge=1, le=100)
    retriever: Retriever = None
    filter: Literal["auto"] | dict[str, Any] | None = Field(
        None, description='Metadata; "auto": what the question names.'
    )
    strict: bool = Field(
        False, description="Nothing that does not pass the filter, even where that leaves nothing."
    )
    texts: bool = Field(True, description="With the texts of the documents.")


class PartResponse(BaseModel):
    name: str
    score: float


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
    parts: list[PartResponse] = Field(description="Who found it.")
    matched: list[str] = Field(description="The metadata of the question that it carries.")
    relaxed: bool = Field(description="It does not pass the filter, which was softened.")


class SearchResponse(BaseModel):
    hits: list[HitResponse]


class CompleteRequest(_StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"question": _DIRECTORS, "k": 6}]})

    question: Question
    k: int = Field(10, ge=1, le=50, description="Documents that may be held at once.")
    rounds: int = Field(12, ge=0, le=50)
    retriever: Retriever = None
    gate: GateChoice = DEFAULT_GATE
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
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": _DIRECTORS, "rounds": 6}]}
    )

    question: Question
    gate: GateChoice = DEFAULT_GATE
    retriever: Retriever = None
    with_model: bool = Field(
        True, description="Ask the service's language model, where it has one."
    )
    rounds: int = Field(12, ge=0, le=50)
    calls: int = Field(40, ge=0, le=200)
    tokens: int = Field(100_000, ge=0, le=1_000_000)
    seconds: float | None = Field(
        None, gt=0, le=3600, description="At most what the service allows."
    )


class TraceResponse(BaseModel):
    """A journey, as `suffice ask --trace` keeps it."""

    version: int
    question: dict[str, str]
    answer: str | None
    action: Literal["answer", "expand", "abstain"] | None
    plan: list[str]
    steps: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    missing: list[str]
    notes: list[str]
    cost: dict[str, float]
    calls: list[dict[str, Any]]
    ticks: list[float]
    settings: dict[str, Any]


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
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {"doc_id": "ada", "title": "Ada", "text": "Ada was taught by Mary."}
                    ]
                }
            ]
        }
    )

    documents: list[DocumentRequest] = Field(min_length=1, max_length=_LIMITS.documents)


class WriteResponse(BaseModel):
    written: int
    documents: int
    generation: int


class HealthResponse(BaseModel):
    status: str
    version: str


# ------------------------------------------------------------------------------------------------------------- envelope


class ErrorDetail(BaseModel):
    code: str = Field(description="A word for programs.")
    message: str
    hint: str = Field(description="What to do about it; may be empty.")


class Envelope(BaseModel, Generic[T]):
    """Every answer."""

    ok: Literal[True]
    data: T
    error: None
    request_id: str


class ErrorResponse(BaseModel):
    """Every refusal."""

    ok: Literal[False]
    data: None
    error: ErrorDetail
    request_id: str


class BatchResponse(BaseModel):
    """One line of a batch's answer, in the order of the questions."""

    line: int
    question_id: str | int | None
    ok: bool
    data: VerdictResponse | None
    error: ErrorDetail | None
