"""Options that several commands share: one name and one help text per idea.

An option is named after its parameter: `skip_bad` is `--skip-bad`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from suffice.cli.output import FILTER_EXAMPLE
from suffice.storage.artefacts import is_device

_FORMAT = Option(help="Format: jsonl, beir, trec, ragas, folder, ...")
MAX_SEED = 2**32 - 1  # of scikit-learn
_LIBRARY = "A folder made by `suffice build`, or an address like qdrant://host:6333/news."


def check_writable(path: Path | None) -> Path | None:
    """Refuse a place that cannot be written before the work, whose result would be lost."""
    if path is not None and not is_device(path):
        folder = next(one for one in path.absolute().parents if one.exists())
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise BadParameter(f"{path} cannot be written: check {folder}, or choose another place")
    return path


OUT_FILE: Any = {"dir_okay": False, "callback": check_writable}

# Data
Collection = Annotated[str | None, Option(help="A generated collection: controlled.")]
DatasetName = Annotated[str | None, _FORMAT]
DatasetFormat = Annotated[str, _FORMAT]  # for commands that require one
DatasetPath = Annotated[Path | None, Option("--path", help="File or folder of the data set.")]
QuestionsFile = Annotated[Path | None, Option(help="Question file, if separate.")]
CorpusFile = Annotated[Path | None, Option(help="Corpus file, if separate.")]
SkipBad = Annotated[bool, Option("--skip-bad", help="Skip bad records and list them.")]
Limit = Annotated[int | None, Option(min=1, help="Use only the first N questions.")]
ChunkTokens = Annotated[
    int, Option(min=0, help="Split documents into chunks of N words; 0: do not.")
]
ChunkOverlap = Annotated[int, Option(min=0, help="Words shared by neighbouring chunks.")]
Parse = Annotated[
    bool, Option("--parse", help="Also ask for facts from a dependency parse (extra 'parse').")
]
Benchmark = Annotated[Path | None, Option(help="A folder made by `suffice grade`.")]

# Retrieval
LibraryArgument = Annotated[str | None, Argument(help=_LIBRARY)]
LibraryOption = Annotated[str | None, Option(help=_LIBRARY)]
NamedLibrary = Annotated[  # of a command whose first argument is a library
    str | None,
    Option("--library", "--store", help="The library, instead of as the first argument."),
]
StoreAddress = Annotated[
    str | None,
    Option("--store", help="Qdrant: qdrant://host:6333/collection; key in QDRANT_API_KEY."),
]
EncoderName = Annotated[str, Option(help="wordllama, bge-small-en-v1.5, or a model folder.")]
BuildEncoder = Annotated[
    str, Option(help="auto, wordllama, bge-small-en-v1.5, a model folder, or none.")
]
RetrieverName = Annotated[str, Option(help="Retriever; 'given' uses the hits in the files.")]
DefaultRetriever = Annotated[str | None, Option(help="Default: hybrid; bm25 without vectors.")]
RankerFolder = Annotated[Path | None, Option(help="bridge: a ranker made by `fit-ranker`.")]
RerankerName = Annotated[
    str | None, Option(help="bridge: 'reader' reads the first hits again; slower.")
]
MetadataFilter = Annotated[str | None, Option(help=f"{FILTER_EXAMPLE}; 'auto' reads the question.")]
Today = Annotated[str | None, Option(help='The date that "yesterday" refers to.')]
HitCount = Annotated[int, Option(min=1, help="How many hits the gate sees.")]
CutOffs = Annotated[str, Option(help="One or more, like 2,4,8.")]

# Gates
GateName = Annotated[
    str, Option(help="'default', a preset, or a folder made by `suffice adapt` or `fit`.")
]
FittedGate = Annotated[
    str, Option("--gate", help="'fitted' on other folds, 'default', or a folder.")
]
Preset = Annotated[
    str,
    Option(help="standard, fast, hardened (drops stuffed hits), deep or auto (suffice-deep)."),
]
PolicyName = Annotated[str, Option(help="How to choose the threshold: f1, cost or risk.")]
Alpha = Annotated[float, Option(help="risk: the largest share of incomplete answers.")]
Delta = Annotated[float, Option(help="risk: the probability that the promise fails.")]
CostList = Annotated[str, Option(help="Costs of a wrong answer, an expansion, an abstention.")]
Folds = Annotated[int, Option(min=2, help="Folds for --gate fitted and the baselines.")]

# Language models
ModelName = Annotated[str | None, Option(help="Language model; key in OPENAI_API_KEY.")]
BaseUrl = Annotated[str | None, Option(help="Server of the model; default: OPENAI_BASE_URL.")]
ModelTimeout = Annotated[float, Option(min=0.1, help="Seconds per request, including retries.")]
ModelMaxChars = Annotated[int, Option(min=1, help="model: characters of passages per prompt.")]
ModelMaxTokens = Annotated[int, Option(min=1, help="model: tokens per answer.")]
ModelPrices = Annotated[str, Option(help="model: price per million tokens, in and out: 0.15,0.60.")]

# A judge behind the gate
JudgeAddress = Annotated[
    str | None,
    Option("--judge", help="Ask this model where the gate is unsure: http://host:8080/v1#MODEL."),
]

# Running and results
VerdictLogFile = Annotated[
    Path | None, Option(help="Log every verdict here, for `suffice report --shadow`.")
]
VerdictLogTexts = Annotated[
    bool, Option("--shadow-texts", help="With --shadow: also log titles and texts of hits.")
]
Scheduler = Annotated[str | None, Option(help="Run on this Dask scheduler: tcp://127.0.0.1:8786.")]
CheckpointDir = Annotated[Path | None, Option(help="Store finished blocks here, to resume later.")]
Seed = Annotated[int, Option(min=0, max=MAX_SEED, help="Same seed, same result.")]
RunFile = Annotated[Path | None, Option(help="Write the run (JSON) here.", **OUT_FILE)]
ReportFile = Annotated[Path | None, Option(help="Write an HTML report here.", **OUT_FILE)]
PlotFile = Annotated[Path | None, Option(help="Write a plot here (.png or .svg).", **OUT_FILE)]
StudyFile = Annotated[Path | None, Option(help="Write the study (JSON) here.", **OUT_FILE)]
JUnitFile = Annotated[
    Path | None, Option(help="Write the --fail-if results as JUnit XML.", **OUT_FILE)
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
