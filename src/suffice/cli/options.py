"""The options that several commands share, so that one idea has one name and one help text everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DatasetPath = Annotated[Path | None, typer.Option("--path", help="The data set's file or folder.")]
QuestionsFile = Annotated[Path | None, typer.Option("--questions", help="Its question file, where it stands apart.")]
CorpusFile = Annotated[Path | None, typer.Option("--corpus", help="Its corpus file, where it stands apart.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad records out and list them.")]
EncoderName = Annotated[str, typer.Option("--encoder", help="Vectors by wordllama, bge-small-en-v1.5 or a model folder.")]
ChunkTokens = Annotated[int, typer.Option("--chunk-tokens", min=0, help="Cut documents into chunks of so many words.")]
ChunkOverlap = Annotated[int, typer.Option("--chunk-overlap", min=0, help="Words that neighbouring chunks share.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script instead of words for a person.")]
