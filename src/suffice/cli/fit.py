"""`suffice fit`: a gate for your own corpus and retriever, from labelled questions or from questions made of the corpus; or,
with `--bridge`, a ranker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli.manners import friendly_errors, print_json, progress_bar, say, say_left_out, words
from suffice.cli.options import (
    Alpha,
    Beside,
    CorpusFile,
    CostList,
    DatasetName,
    DatasetPath,
    Delta,
    EncoderName,
    Grade,
    Json,
    Limit,
    PolicyName,
    QuestionsFile,
    RerankerName,
    RetrieverName,
    SkipBad,
)
from suffice.cli.ranker import fit_ranker
from suffice.errors import InputError

if TYPE_CHECKING:
    from suffice.assess.lessons import Labelled
    from suffice.assess.policy import Policy
    from suffice.files import BadRecords

EXAMPLE = '{"question": "...", "gold": ["a1", "b2"], "hits": [{"doc_id": "a1", "title": "...", "text": "...", "score": 7.5}]}'


def fit(
    out: Annotated[Path, typer.Option("--out", help="The folder of the new gate.")],
    examples: Annotated[Path | None, typer.Option("--examples", help="JSON Lines of question, hits and gold ids.")] = None,
    dataset: DatasetName = None,
    path: DatasetPath = None,
    questions: QuestionsFile = None,
    corpus: CorpusFile = None,
    benchmark: Annotated[Path | None, typer.Option("--benchmark", help="Or questions that `suffice grade` made.")] = None,
    twins: Annotated[bool, typer.Option("--twins/--no-twins", help="benchmark: its unanswerable questions, too.")] = True,
    retriever: RetrieverName = "bm25",
    k: Annotated[int, typer.Option("--k", min=1, help="How many hits the gate will see.")] = 10,
    encoder: EncoderName = "wordllama",
    beside: Beside = None,
    grade: Grade = "fast",
    reranker: RerankerName = None,
    policy: PolicyName = "f1",
    alpha: Alpha = 0.1,
    delta: Delta = 0.1,
    costs: CostList = "1,0.05,0.3",
    bridge: Annotated[bool, typer.Option("--bridge", help="Fit the bridge retriever's ranker instead of a gate.")] = False,
    limit: Limit = None,
    skip_bad: SkipBad = False,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same gate.")] = 42,
    json: Json = False,
) -> None:
    """Fit a gate to labelled questions and what your retriever returned for them."""
    with friendly_errors(json=json):
        from suffice.datasets import read
        from suffice.evaluate.benchmark import benchmark_lessons
        from suffice.evaluate.cases import collect, labelled
        from suffice.evaluate.gate import Choice, check_extra, costs_of, fitting, lenses, remembering
        from suffice.files import BadRecords

        if sum(one is not None for one in (examples, dataset, benchmark)) != 1:
            raise InputError("give one of --examples, --dataset or --benchmark", hint=f"a line of --examples is {EXAMPLE}")
        if bridge:
            if dataset is None:
                raise InputError("--bridge searches the corpus itself", hint="give --dataset jsonl --path FOLDER")
            data = read(dataset, path, questions=questions, corpus=corpus, skip_bad=skip_bad)
            fit_ranker(data, out, encoder=encoder, k=k, limit=limit, seed=seed, json=json)
            return
        choice = Choice(policy, alpha, delta, costs_of(costs))
        check_extra()
        looking = lenses(grade, reranker)
        bad = BadRecords(skip=skip_bad)
        with progress_bar(quiet=json) as progress:
            options: dict[str, Any] = {"beside": words(beside), "encoder": encoder, "limit": limit, "progress": progress}
            if examples is not None:
                lessons = [one for _, one in zip(range(limit or 10**9), _read(examples, k, bad))]
            elif benchmark is not None:
                lessons = benchmark_lessons(benchmark, retriever, k, twins=twins, **options)
            else:
                data = read(dataset or "", path, questions=questions, corpus=corpus, skip_bad=skip_bad)
                bad = data.bad
                lessons = [labelled(one) for one in collect(data, [retriever], [k], **options).cases(retriever, k)]
            if not json:
                say(f"fitting on {len(lessons):,} questions ...")
            gate = remembering(fitting(choice, looking, seed, k=k)(lessons), [one.question for one in lessons])
        gate.save(out)
        if json:
            about = {"path": str(out), "questions": len(lessons), "k": k, "seed": seed, "grade": grade}
            print_json({**about, "policy": gate.policy.as_json(), "metrics": gate.card.get("metrics")})
        else:
            print(f"gate for {len(lessons):,} questions with {k} hits at {out}")
            print(gate.policy.words)
        say_left_out(bad)
        if not json:
            say(f"\nnext: {_next(gate.policy, out)}")


def _next(policy: Policy, out: Path) -> str:
    if policy.answer_at is None:  # nobody wants to check with a gate that never answers
        return "label more questions, or promise less: a larger --alpha or --delta"
    return f'suffice check "your question" --hits hits.json --gate {out}'


def _read(path: Path, k: int, bad: BadRecords) -> Iterator[Labelled]:
    """Examples that bring the texts of their hits along. Gold may stand as `gold` or as `needed`."""
    from suffice.assess.lessons import Labelled
    from suffice.files import read_json_records

    for record in read_json_records(path, bad):
        value = record.value
        question, hits, gold = value.get("question"), value.get("hits"), value.get("gold", value.get("needed"))
        if not isinstance(question, str) or not isinstance(hits, list) or not isinstance(gold, list):
            bad.report(
                InputError(f"{record.where}: expected 'question', a list 'hits' and a list 'gold'", hint=f"like {EXAMPLE}")
            )
            continue
        kind, hops, titles, others = (value.get(name) for name in ("kind", "hops", "titles", "others"))
        yield Labelled(
            question,
            hits[:k],
            frozenset(map(str, gold)),
            titles=titles if isinstance(titles, dict) else {},
            kind=kind if isinstance(kind, str) else None,
            hops=float(hops) if isinstance(hops, int | float) else None,
            others=[one for one in others if isinstance(one, list)] if isinstance(others, list) else (),
        )
