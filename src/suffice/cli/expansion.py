"""`suffice evaluate expansion`: what the gate as stop signal is worth, beside every fixed k."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.manners import (
    friendly_errors,
    numbers,
    picture_kind,
    print_json,
    progress_bar,
    say,
    say_left_out,
    show_table,
    words,
)
from suffice.cli.opening import hashes, open_data
from suffice.cli.options import (
    Collection,
    CorpusFile,
    DatasetName,
    DatasetPath,
    EncoderName,
    Json,
    Limit,
    PlotFile,
    QuestionsFile,
    SkipBad,
)


def expansion(
    collection: Collection = None,
    dataset: DatasetName = None,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    retriever: Annotated[str, typer.Option("--retriever", help="Who is expanded.")] = "bridge",
    beside: Annotated[str, typer.Option("--beside", help="Who else stands at a fixed k; names, with commas.")] = "bm25,hybrid",
    gate: Annotated[str, typer.Option("--gate", help="'fitted': on the other folds; 'default', or a folder.")] = "fitted",
    ranker: Annotated[
        str, typer.Option("--ranker", help="Of the bridge: 'hand', which saw no question, or a folder.")
    ] = "hand",
    k: Annotated[str, typer.Option("--k", help="Most documents held, with commas.")] = "3,4,5,6,8,10",
    answer_at: Annotated[str, typer.Option("--answer-at", help="Thresholds of the gate, with commas.")] = "0.5,0.7,0.9",
    folds: Annotated[int, typer.Option("--folds", min=2, help="For --gate fitted.")] = 5,
    encoder: EncoderName = "wordllama",
    limit: Limit = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write the study (JSON) here.")] = None,
    plot: PlotFile = None,
    seed: Annotated[int, typer.Option("--seed", help="For folds, the bootstrap, and --collection.")] = 42,
    json: Json = False,
) -> None:
    """Completeness against documents held: every fixed k beside a search that the gate ends."""
    with friendly_errors(json=json):
        from suffice.evaluate import expansion as experiment
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders
        from suffice.retrieve import named  # noqa: F401 - importing it registers our retrievers

        settings = experiment.Settings(
            retriever=retriever,
            beside=tuple(one for one in words(beside) if one != retriever),
            gate=gate,
            ranker=ranker,
            most=tuple(numbers(k)),
            answer_at=_shares(answer_at),
            folds=folds,
            encoder=encoder,
            limit=limit,
            seed=seed,
        )
        kind = picture_kind(plot)
        data = open_data(
            collection=collection, dataset=dataset, path=path, questions=questions, corpus=corpus, skip_bad=skip_bad, seed=seed
        )
        with progress_bar(quiet=json) as progress:
            done = experiment.study(data, settings, data=hashes(path, questions, corpus), progress=progress)
        if out:
            done.save(out)
        if plot:
            from suffice.evaluate.plots import draw
            from suffice.files import write_atomically

            write_atomically(plot, draw(done.figures[0], kind))
        if json:
            print_json(done.as_json())
        else:
            for table in done.tables:
                show_table(table)
            for line in done.summary:
                print(line)
        say_left_out(data.bad)
        if done.settings["seen"]:
            say(f"the gate was fitted on {done.settings['seen']:,} of these questions: its figures are too good")
        for written in filter(None, (out, plot)):
            say(f"wrote {written}")


def _shares(text: str) -> tuple[float, ...]:
    from suffice.errors import InputError

    try:
        return tuple(sorted({float(word) for word in words(text)}))
    except ValueError as error:
        raise InputError(f"--answer-at is {text!r}, expected probabilities", hint="for example --answer-at 0.5,0.9") from error
