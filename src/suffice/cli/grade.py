"""`suffice grade`: a graded multi-hop benchmark from a corpus, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, words
from suffice.cli.options import CorpusFile, EncoderName, Json, SkipBad

if TYPE_CHECKING:
    from suffice.grade.pipeline import Benchmark


def grade(
    corpus_path: Annotated[Path | None, typer.Argument(metavar="CORPUS", help="A corpus file or folder.")] = None,
    out: Annotated[
        Path, typer.Option("--out", help="The benchmark's folder; a second run goes on where the first was.")
    ] = Path("benchmark"),
    dataset: Annotated[
        str, typer.Option("--dataset", help="The corpus's format: jsonl, beir, hotpotqa, musique, ...")
    ] = "jsonl",
    corpus: CorpusFile = None,
    encoder: EncoderName = "wordllama",
    per_hop: Annotated[int, typer.Option("--per-hop", min=1, help="Chains of each length to try.")] = 400,
    per_form: Annotated[int, typer.Option("--per-form", min=0, help="Questions of each other form to try.")] = 400,
    longest: Annotated[int, typer.Option("--longest", min=2, max=5, help="Facts in the longest chain.")] = 5,
    forms: Annotated[str, typer.Option("--forms", help="With commas.")] = "chain,comparison,bridge,intersection",
    twins: Annotated[float, typer.Option("--twins", min=0, max=1, help="Share of unanswerable twins.")] = 0.25,
    skip_bad: SkipBad = False,
    seed: Annotated[int, typer.Option("--seed", help="Same corpus, settings and seed: same bytes.")] = 42,
    json: Json = False,
) -> None:
    """Make questions with answers, gold documents and difficulty from a corpus alone."""
    with friendly_errors(json=json):
        from suffice.datasets import read
        from suffice.grade.pipeline import Settings, grade

        settings = Settings(seed, per_hop, per_form, longest, tuple(words(forms)), twins, encoder)
        data = read(dataset, corpus=corpus or _corpus_file(corpus_path, dataset), skip_bad=skip_bad)
        with progress_bar(quiet=json) as progress:
            made = grade(data.documents(), out, settings=settings, progress=progress)
        if json:
            print_json({**made.as_json(), "skipped": data.bad.count})
        else:
            _show(made)
            say(f"\nnext: suffice fit --benchmark {out} --out gate")


def _corpus_file(path: Path | None, dataset: str) -> Path | None:
    """The corpus inside a data set's folder, or the file itself."""
    if path is None or not path.is_dir():
        return path
    for name in ("documents.jsonl", "corpus.jsonl"):
        if (path / name).is_file():
            return path / name
    found = sorted(path.glob("*corpus*.json*"))
    return found[0] if found else path


def _show(made: Benchmark) -> None:
    for name, count in made.counts.items():
        print(f"{name:<28} {count:,}")
    for hops, count in made.by_hops.items():
        print(f"  {hops} hops{'':<20} {count:,}")
    for kind, count in made.by_kind.items():
        print(f"  kind {kind:<21} {count:,}")
    for why, count in made.dropped.items():
        print(f"  dropped: {why:<17} {count:,}")
    if not made.done:
        say("everything stood already")
