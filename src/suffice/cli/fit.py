"""`suffice fit --bridge`: a ranker of the bridge retriever from one's own labelled questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.options import (
    Alpha,
    CorpusFile,
    CostList,
    DatasetName,
    DatasetPath,
    Delta,
    EncoderName,
    Json,
    Limit,
    OtherRetrievers,
    PolicyName,
    Preset,
    QuestionsFile,
    RerankerName,
    RetrieverName,
    SkipBad,
)
from suffice.cli.output import handle_errors, parse_list, print_json, progress_bar, say, say_skipped
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.gate.policy import Policy
    from suffice.gate.training import LabelledQuestion
    from suffice.storage import BadRecords


def fit_ranker(
    dataset: Any, out: Path, *, encoder: str, k: int, limit: int | None, seed: int, json: bool
) -> None:
    """Fit, save, and say whether it finds more complete sets than the ranker that ships."""
    from suffice.evaluation.bridge_training import fit_own_ranker
    from suffice.evaluation.tables import format_cell
    from suffice.integrations.onnx import open_encoder

    with progress_bar(quiet=json) as progress:
        made = fit_own_ranker(
            dataset, open_encoder(encoder), k=k, limit=limit, seed=seed, progress=progress
        )
    card = {
        "data": dataset.name,
        "questions": made.questions,
        "encoder": encoder,
        f"complete@{k}": made.own.value,
    }
    say_skipped(dataset.bad)
    made.ranker.save(out, card=card, seed=seed)
    if json:
        figures = {"own": made.own.value, "shipped": made.shipped.value}
        print_json(
            {
                "path": str(out),
                "questions": made.questions,
                "k": k,
                "seed": seed,
                f"complete@{k}": figures,
            }
        )
        return
    print(f"ranker from {made.questions:,} questions at {out}")
    print(
        f"complete@{k} by folds: {format_cell(made.own)}; the ranker that ships: {format_cell(made.shipped)}"
    )
    if (made.own.value or 0.0) < (made.shipped.value or 0.0):
        say("the ranker that ships finds more: label more questions before you use this one")
    say(f'\nnext: suffice search LIBRARY "your question" --ranker {out}')


# --- fit: `suffice fit`: a gate for your own corpus and retriever, from labelled questions or from questions made of the corpus; or,

LABELLED_EXAMPLE = '{"question": "...", "gold": ["a1", "b2"], "hits": [{"doc_id": "a1", "title": "...", "text": "...", "score": 7.5}]}'


def fit(
    out: Annotated[Path, typer.Option("--out", help="The folder of the new gate.")],
    examples: Annotated[
        Path | None, typer.Option("--examples", help="JSON Lines of question, hits and gold ids.")
    ] = None,
    dataset: DatasetName = None,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    benchmark: Annotated[
        Path | None, typer.Option("--benchmark", help="Or questions that `suffice grade` made.")
    ] = None,
    twins: Annotated[
        bool, typer.Option("--twins/--no-twins", help="benchmark: its unanswerable questions, too.")
    ] = True,
    retriever: RetrieverName = "bm25",
    k: Annotated[int, typer.Option("--k", min=1, help="How many hits the gate will see.")] = 10,
    encoder: EncoderName = "wordllama",
    beside: OtherRetrievers = None,
    preset: Preset = "fast",
    reranker: RerankerName = None,
    policy: PolicyName = "f1",
    alpha: Alpha = 0.1,
    delta: Delta = 0.1,
    costs: CostList = "1,0.05,0.3",
    bridge: Annotated[
        bool, typer.Option("--bridge", help="Fit the bridge retriever's ranker instead of a gate.")
    ] = False,
    limit: Limit = None,
    skip_bad: SkipBad = False,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same gate.")] = 42,
    json: Json = False,
) -> None:
    """Fit a gate to labelled questions and what your retriever returned for them."""
    with handle_errors(json=json):
        from suffice.datasets import load
        from suffice.evaluation.benchmark_files import benchmark_questions
        from suffice.evaluation.gate_evaluation import (
            PolicyChoice,
            gate_fitter,
            open_encoders,
            parse_costs,
            require_fit_extra,
            with_seen_questions,
        )
        from suffice.evaluation.searching import retrieve_dataset, to_labelled_question
        from suffice.storage import BadRecords

        if sum(one is not None for one in (examples, dataset, benchmark)) != 1:
            raise InputError(
                "give one of --examples, --dataset or --benchmark",
                hint=f"a line of --examples is {LABELLED_EXAMPLE}",
            )
        if bridge:
            if dataset is None:
                raise InputError(
                    "--bridge searches the corpus itself", hint="give --dataset jsonl --path FOLDER"
                )
            data = load(dataset, path, questions=questions, corpus=corpus, skip_bad=skip_bad)
            fit_ranker(data, out, encoder=encoder, k=k, limit=limit, seed=seed, json=json)
            return
        choice = PolicyChoice(policy, alpha, delta, parse_costs(costs))
        require_fit_extra()
        looking = open_encoders(preset, reranker)
        bad = BadRecords(skip=skip_bad)
        with progress_bar(quiet=json) as progress:
            options: dict[str, Any] = {
                "beside": parse_list(beside),
                "encoder": encoder,
                "limit": limit,
                "progress": progress,
            }
            if examples is not None:
                lessons = [
                    one for _, one in zip(range(limit or 10**9), _read_labelled(examples, k, bad))
                ]
            elif benchmark is not None:
                lessons = benchmark_questions(benchmark, retriever, k, twins=twins, **options)
            else:
                data = load(
                    dataset or "", path, questions=questions, corpus=corpus, skip_bad=skip_bad
                )
                bad = data.bad
                lessons = [
                    to_labelled_question(one)
                    for one in retrieve_dataset(data, [retriever], [k], **options).questions(
                        retriever, k
                    )
                ]
            if not json:
                say(f"fitting on {len(lessons):,} questions ...")
            gate = with_seen_questions(
                gate_fitter(choice, looking, seed, k=k)(lessons), [one.question for one in lessons]
            )
        gate.save(out)
        if json:
            about = {
                "path": str(out),
                "questions": len(lessons),
                "k": k,
                "seed": seed,
                "preset": preset,
            }
            print_json(
                {**about, "policy": gate.policy.as_json(), "metrics": gate.card.get("metrics")}
            )
        else:
            print(f"gate for {len(lessons):,} questions with {k} hits at {out}")
            print(gate.policy.words)
        say_skipped(bad)
        if not json:
            say(f"\nnext: {_next_step(gate.policy, out)}")


def _next_step(policy: Policy, out: Path) -> str:
    if policy.answer_at is None:  # nobody wants to check with a gate that never answers
        return "label more questions, or promise less: a larger --alpha or --delta"
    return f'suffice check "your question" --hits hits.json --gate {out}'


def _read_labelled(path: Path, k: int, bad: BadRecords) -> Iterator[LabelledQuestion]:
    """Examples that bring the texts of their hits along. Gold may stand as `gold` or as `needed`."""
    from suffice.gate.training import LabelledQuestion
    from suffice.storage import read_json_records

    for record in read_json_records(path, bad):
        value = record.value
        question, hits, gold = (
            value.get("question"),
            value.get("hits"),
            value.get("gold", value.get("needed")),
        )
        if (
            not isinstance(question, str)
            or not isinstance(hits, list)
            or not isinstance(gold, list)
        ):
            bad.report(
                InputError(
                    f"{record.where}: expected 'question', a list 'hits' and a list 'gold'",
                    hint=f"like {LABELLED_EXAMPLE}",
                )
            )
            continue
        kind, hops, titles, others = (
            value.get(name) for name in ("kind", "hops", "titles", "others")
        )
        yield LabelledQuestion(
            question,
            hits[:k],
            frozenset(map(str, gold)),
            titles=titles if isinstance(titles, dict) else {},
            kind=kind if isinstance(kind, str) else None,
            hops=float(hops) if isinstance(hops, int | float) else None,
            others=[one for one in others if isinstance(one, list)]
            if isinstance(others, list)
            else (),
        )
