"""`suffice fit`: fit a gate to your own labelled questions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from suffice.cli import options as opt
from suffice.cli.loaders import DataSource
from suffice.cli.output import (
    NOT_BETTER,
    command,
    print_json,
    progress_bar,
    say,
    say_skipped,
)
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.evaluation.significance import Difference
    from suffice.gate.gate import Gate
    from suffice.gate.training import LabelledQuestion
    from suffice.storage import BadRecords

UNCHECKED = (
    "note: on real questions, a gate fitted to generated ones can be worse than the shipped gate; "
    "--labels FILE compares both"
)
LABELLED_EXAMPLE = (
    '{"question": "...", "gold": ["a1", "b2"], '
    '"hits": [{"doc_id": "a1", "title": "...", "text": "...", "score": 7.5}]}'
)


@command
def fit(
    out: Annotated[Path, Option(help="Folder of the new gate.")],
    examples: Annotated[
        Path | None, Option(help="JSON Lines with question, hits and gold ids.")
    ] = None,
    dataset: opt.DatasetName = None,
    path: opt.DatasetPath = None,
    questions: opt.QuestionsFile = None,
    corpus: opt.CorpusFile = None,
    benchmark: opt.Benchmark = None,
    twins: Annotated[bool, Option(help="With --benchmark: use its unanswerable questions.")] = True,
    retriever: opt.RetrieverName = "bm25",
    k: opt.HitCount = 10,
    encoder: opt.EncoderName = "wordllama",
    preset: opt.Preset = "standard",
    policy: opt.PolicyName = "f1",
    alpha: opt.Alpha = 0.1,
    delta: opt.Delta = 0.1,
    costs: opt.CostList = "1,0.05,0.3",
    labels: Annotated[
        Path | None,
        Option(
            help="With --benchmark: labels of real questions, to compare with the shipped gate."
        ),
    ] = None,
    force: Annotated[
        bool, Option("--force", help="With --labels: write it even if it is not better.")
    ] = False,
    limit: opt.Limit = None,
    skip_bad: opt.SkipBad = False,
    seed: opt.Seed = 42,
    json: opt.Json = False,
) -> None:
    """Fit a gate to labelled questions with your retriever's hits."""
    from suffice.evaluation import gate_evaluation as experiment
    from suffice.evaluation.benchmark_maker import open_maker
    from suffice.evaluation.searching import retrieve_dataset, to_labelled_question
    from suffice.gate.gate import GATE_KIND, open_readers
    from suffice.storage import BadRecords, check_replaceable

    if sum(given is not None for given in (examples, dataset, benchmark)) != 1:
        hint = f"a line of --examples is {LABELLED_EXAMPLE}"
        raise InputError("give one of --examples, --dataset or --benchmark", hint=hint)
    source = DataSource(None, dataset, path, questions, corpus)
    choice = experiment.PolicyChoice(policy, alpha, delta, experiment.parse_costs(costs))
    experiment.require_fit_extra()
    maker = None if benchmark is None else open_maker("--benchmark")
    check_replaceable(out, kind=GATE_KIND)  # before the work
    open_readers(preset)  # what is missing is reported before the work
    bad = BadRecords(skip=skip_bad)
    real = None if labels is None else _RealLabels.read(labels, benchmark, preset, k, bad)
    with progress_bar(quiet=json) as progress:
        if examples is not None:
            labelled = list(islice(_read_labelled(examples, k, bad), limit))
        elif benchmark is not None and maker is not None:
            labelled = maker.labelled_questions(
                benchmark,
                retriever,
                k,
                twins=twins,
                encoder=encoder,
                limit=limit,
                progress=progress,
            )
        else:
            data = source.open(skip_bad=skip_bad, seed=seed)
            bad = data.bad
            retrieved = retrieve_dataset(
                data, [retriever], [k], encoder=encoder, limit=limit, progress=progress
            )
            labelled = [to_labelled_question(one) for one in retrieved.questions(retriever, k)]
        if not json:
            say(f"fitting on {len(labelled):,} questions ...")
        fitter = experiment.gate_fitter(
            choice, preset, seed, k, progress=progress, total=len(labelled)
        )
        gate = fitter(labelled)
        gate = experiment.with_seen_questions(gate, [question.question for question in labelled])
    made = benchmark is not None
    record = {"questions": len(labelled), "k": k, "seed": seed, "preset": preset}
    written = _write(gate, out, record, real, force=force, made=made, json=json)
    say_skipped(bad)
    if not written:
        say("nothing written: keep the shipped gate, or write this one anyway with --force")
        raise typer.Exit(NOT_BETTER)
    if not json:
        say(f"\nnext: {_next_step(gate, out)}")


def _write(
    gate: Gate,
    out: Path,
    record: dict[str, Any],
    real: _RealLabels | None,
    *,
    force: bool,
    made: bool,
    json: bool,
) -> bool:
    """Save the gate, unless it is not better on real labels; whether it is saved."""
    from suffice.evaluation.adaptation import describe_gain

    gain = None if real is None else real.gain(gate)
    written = force or gain is None or (gain.value or 0.0) > 0
    if written:
        gate.save(out)
    if json:
        path = {"path": str(out) if written else None}
        figures = {"policy": gate.policy.as_json(), "metrics": gate.card.get("metrics")}
        print_json(path | record | {"gain": gain and asdict(gain)} | figures)
        return written
    if real is not None and gain is not None:
        print(f"on {len(real.examples):,} labels, {describe_gain(gain, len(real.examples))}")
    elif made:
        say(UNCHECKED)
    if written:
        print(f"gate for {record['questions']:,} questions with {record['k']} hits at {out}")
        print(gate.policy.words)
    return written


@dataclass(frozen=True, slots=True)
class _RealLabels:
    """Labels of questions that were not generated, to compare a gate with the shipped one."""

    examples: Sequence[LabelledQuestion]
    shipped: Gate

    @classmethod
    def read(
        cls, path: Path, benchmark: Path | None, preset: str, k: int, bad: BadRecords
    ) -> _RealLabels:
        from suffice.datasets import read_labels, to_examples
        from suffice.evaluation.adaptation import MIN_LABELS
        from suffice.gate.gate import Gate

        if benchmark is None:
            hint = "to learn from labels, use: suffice adapt"
            raise InputError("--labels goes with --benchmark", hint=hint)
        shipped = Gate.load(preset=preset)
        found = to_examples(read_labels(path, bad=bad), k=min(k, shipped.card["k"]))
        if (count := len(found.examples)) < MIN_LABELS:
            hint = f"label {MIN_LABELS - count} more lists of hits"
            if found.left_out:
                hint += f"; {len(found.left_out)} are skipped, the first: {found.left_out[0]}"
            message = f"{path} has {count} labels that can be used, expected at least {MIN_LABELS}"
            raise InputError(message, hint=hint)
        return cls(found.examples, shipped)

    def gain(self, gate: Gate) -> Difference:
        """How much lower the gate's Brier score is than that of the shipped one."""
        from suffice.evaluation.adaptation import compare_gates

        return compare_gates(self.shipped, gate, self.examples)


def _next_step(gate: Gate, out: Path) -> str:
    if gate.policy.answer_at is None:
        return f"{_more_labels(gate)}promise less with a larger --alpha or --delta"
    return f'suffice check "your question" --hits hits.json --gate {out}'


def _more_labels(gate: Gate) -> str:
    """How many questions in all the promise would need, since only a part of them carries it."""
    promise, parts = gate.policy.promise, gate.card["questions"]
    if promise is None or promise.need is None:
        return "label more questions, or "
    if promise.need.questions is None:
        return ""
    share = parts["promise"] / (parts["fit"] + parts["promise"])
    labels = math.ceil(promise.need.questions / share)
    return f"label at least {labels:,} questions, or "


def _read_labelled(path: Path, k: int, bad: BadRecords) -> Iterator[LabelledQuestion]:
    """Questions with their hits and the ids of their gold documents (`gold` or `needed`)."""
    from suffice.gate.hits import normalize_hits
    from suffice.gate.training import LabelledQuestion
    from suffice.storage import read_json_records

    for record in read_json_records(path, bad):
        value = record.value
        question: Any = value.get("question")
        hits: Any = value.get("hits")
        gold: Any = value.get("gold", value.get("needed"))
        kind, hops, titles = map(value.get, ("kind", "hops", "titles"))
        try:
            normalize_hits(question, hits, k=k)
            if not question.strip() or not _is_list_of_ids(gold):
                raise InputError("expected 'question', a list 'hits' and a list 'gold' of ids")
        except InputError as error:
            hint = f"like {LABELLED_EXAMPLE}"
            if gold is None and "complete" in value:
                hint = f"a yes or no is enough to adapt a gate: suffice adapt {path} --out gate"
            bad.report(InputError(f"{record.where}: {error}", hint=hint))
            continue
        yield LabelledQuestion(
            question,
            hits[:k],
            frozenset(map(str, gold)),
            titles=titles if isinstance(titles, dict) else {},
            kind=kind if isinstance(kind, str) else None,
            hops=float(hops) if isinstance(hops, int | float) else None,
        )


def _is_list_of_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str | int) for one in value)
