"""`suffice evaluate difficulty`: where does a system err, by hops and by how far the evidence stands from the question?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli.manners import friendly_errors, picture_kind, print_json, say, say_left_out, show_table, typed_command
from suffice.cli.options import DatasetFormat, EncoderName, Json, PlotFile, ReportFile, SkipBad

if TYPE_CHECKING:
    from suffice.evaluate.difficulty import Links


def difficulty(
    results: Annotated[Path, typer.Argument(help="JSON Lines of question_id and correct, answer or retrieved; or a run.")],
    benchmark: Annotated[Path, typer.Option("--benchmark", help="The folder that `suffice grade` wrote, or a data set's.")],
    dataset: DatasetFormat = "jsonl",
    by: Annotated[str | None, typer.Option("--by", help="What is judged: correct, answer or retrieved.")] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="retrieved: how many of them count.")] = 10,
    match: Annotated[str, typer.Option("--match", help="answer: em, token_f1 or word_overlap, right from 0.5 on.")] = "em",
    aggregation: Annotated[str, typer.Option("--aggregation", help="Of similarities: min, power or mean.")] = "min",
    encoder: EncoderName = "wordllama",
    plot: PlotFile = None,
    report: ReportFile = None,
    skip_bad: SkipBad = False,
    seed: Annotated[int, typer.Option("--seed", help="For the bootstrap.")] = 42,
    json: Json = False,
) -> None:
    """The difficulty matrix of any system's results: error rates by hops and by distance of the evidence."""
    with friendly_errors(json=json):
        from suffice.datasets import read
        from suffice.evaluate import difficulty as experiment
        from suffice.evaluate.matrix import graded
        from suffice.evaluate.outcomes import read_results
        from suffice.evaluate.report import check_extra
        from suffice.files import BadRecords
        from suffice.integrations import onnx  # noqa: F401 - importing it registers its encoders
        from suffice.ports import ENCODERS

        if plot or report:
            check_extra()
        kind = picture_kind(plot)
        bad = BadRecords(skip=skip_bad)
        data = read(dataset, benchmark, skip_bad=skip_bad)
        examples = list(data.examples())
        errors = read_results(results, examples, by=by, k=k, match=match, bad=bad)
        say_left_out(bad)
        of = graded(examples, data.documents(), ENCODERS.get(encoder)())
        found = [experiment.difficulty_of(name, of, one, aggregation=aggregation, seed=seed) for name, one in errors.items()]
        links = _links(benchmark)
        if json:
            print_json(experiment.summary(found, links))
        else:
            for table in experiment.tables(found, links):
                show_table(table)
            for line in experiment.findings(found):
                say(line)
        if of.left_out:
            say(f"left out {of.left_out:,} questions that need no document, or one that the corpus does not hold")
        for name, path in _plots(plot, [one.system for one in found]).items():
            from suffice.evaluate.plots import draw
            from suffice.files import write_atomically

            one = next(each for each in found if each.system == name)
            write_atomically(path, draw(experiment.heatmap(one), kind))
            say(f"wrote {path}")
        if report:
            told = {"benchmark": benchmark.name, "results": results.name, "encoder": encoder, "seed": str(seed)}
            say(f"wrote {experiment.report(found, report, links=links, settings=told, command=typed_command())}")


def _plots(plot: Path | None, systems: list[str]) -> dict[str, Path]:
    """Where each system's heatmap goes: the path itself, or with numbers where there are several."""
    if plot is None:
        return {}
    if len(systems) == 1:
        return {systems[0]: plot}
    return {name: plot.with_name(f"{plot.stem}-{at}{plot.suffix}") for at, name in enumerate(systems, start=1)}


def _links(benchmark: Path) -> Links | None:
    """Of a benchmark that was made here: which questions need missing links."""
    from suffice.evaluate.difficulty import missing_links
    from suffice.files import BadRecords, read_json_records

    made = benchmark / "questions.jsonl"
    if not made.is_file():
        return None
    records = [record.value for record in read_json_records(made, BadRecords())]
    return missing_links(records) if any("path" in record for record in records) else None
