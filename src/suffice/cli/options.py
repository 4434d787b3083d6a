"""The options that several commands share, so that one idea has one name and one help text everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_DATASET = typer.Option(
    "--dataset", help="The format: jsonl, beir, trec, frames, hotpotqa, musique, multihop_rag, ..."
)
_LIBRARY = "A folder made by `suffice build`, or an address like qdrant://host:6333/news."

Collection = Annotated[
    str | None, typer.Option("--collection", help="A collection made here: controlled.")
]
DatasetName = Annotated[str | None, _DATASET]
DatasetFormat = Annotated[str, _DATASET]  # of a command that cannot do without
DatasetPath = Annotated[Path | None, typer.Option("--path", help="The data set's file or folder.")]
QuestionsFile = Annotated[
    Path | None, typer.Option("--questions", help="Its question file, where it stands apart.")
]
CorpusFile = Annotated[
    Path | None, typer.Option("--corpus", help="Its corpus file, where it stands apart.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad records out and list them.")]
EncoderName = Annotated[
    str,
    typer.Option("--encoder", help="Vectors by wordllama, bge-small-en-v1.5 or a model folder."),
]
ChunkTokens = Annotated[
    int, typer.Option("--chunk-tokens", min=0, help="Cut documents into chunks of so many words.")
]
ChunkOverlap = Annotated[
    int, typer.Option("--chunk-overlap", min=0, help="Words that neighbouring chunks share.")
]
GateName = Annotated[
    str,
    typer.Option(
        "--gate", help="'default' for the one that ships, or a folder made by `suffice fit`."
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        help="fast; quality: looks through an encoder, too; hardened: skips hits that seem stuffed.",
    ),
]
RerankerName = Annotated[
    str | None,
    typer.Option("--reranker", help="quality: also read the hits with this cross-encoder; slow."),
]
OtherRetrievers = Annotated[
    str | None,
    typer.Option(
        "--beside", help="Other retrievers, with commas: how far they agree is looked at, too."
    ),
]
PolicyName = Annotated[
    str, typer.Option("--policy", help="How the threshold is chosen: f1, cost or risk.")
]
Alpha = Annotated[
    float,
    typer.Option("--alpha", help="risk: at most this share of the answered is incomplete ..."),
]
Delta = Annotated[float, typer.Option("--delta", help="... except with this probability.")]
CostList = Annotated[
    str, typer.Option("--costs", help="Of a wrong answer, an expansion, an abstention.")
]
LibraryArgument = Annotated[str, typer.Argument(help=_LIBRARY)]
LibraryOption = Annotated[str | None, typer.Option("--library", help=_LIBRARY)]
RetrieverName = Annotated[
    str, typer.Option("--retriever", help="Who searches; 'given' for hits that came along.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first so many questions.")
]
RunFile = Annotated[Path | None, typer.Option("--out", help="Write the run (JSON) here.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write an HTML report here.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Draw it here (.png or .svg).")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON for a script instead of words for a person.")
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", help="A language model, as its server names it; the key: OPENAI_API_KEY."
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", help="Its server, like http://127.0.0.1:8080/v1; else OPENAI_BASE_URL."
    ),
]
ModelTimeout = Annotated[
    float,
    typer.Option("--timeout-s", min=0.1, help="How long one request may take, retries included."),
]
ModelMaxChars = Annotated[
    int, typer.Option("--letters", min=1, help="model: characters of passages it is shown at once.")
]
ModelPrices = Annotated[
    str,
    typer.Option("--prices", help="model: what a million tokens cost, in and out, like 0.15,0.60."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", help="Work on the workers of this Dask scheduler, like tcp://127.0.0.1:8786."
    ),
]
CheckpointDir = Annotated[
    Path | None,
    typer.Option(
        "--blocks",
        help="Keep finished blocks here until the end: a run that was cut short goes on.",
    ),
]
StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store", help="On Qdrant: qdrant://host:6333/collection; the key: QDRANT_API_KEY."
    ),
]
