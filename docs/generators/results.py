"""Pages of results, from stored runs and studies: retrieval, the papers, expansion, and gates
fitted on made questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docs.generators.markdown import at_commit, table_markdown
from docs.generators.paths import RESULTS, ROOT, RUNS
from suffice.errors import InputError
from suffice.evaluation.report import Plot, Table, draw_plot
from suffice_research import SLOW_STUDIES, STUDY_NAMES
from suffice_research.frames import published as published_module
from suffice_research.magaf import published as magaf_published
from suffice_research.multi_meta_rag.pair_scores import compare_scores, load_scores
from suffice_research.par_rag.model_study import WITH_READER
from suffice_research.published import PublishedTable
from suffice_research.study import Study


@dataclass(frozen=True)
class Experiment:
    """One command, what its table shows, and the published tables that stand beside it."""

    name: str
    title: str
    says: str
    arguments: str  # $DATA stands for the folder of real data
    metrics: tuple[str, ...]
    papers: tuple[PublishedTable, ...] = ()

    @property
    def command(self) -> str:
        return f"suffice evaluate retrieval {self.arguments}"

    @property
    def stored(self) -> Path:
        return RUNS / f"{self.name}.json"


WIKI = "--dataset {0} --questions $DATA/{0}/{0}.json --corpus $DATA/{0}/{0}_corpus.json"
EXPERIMENTS = (
    Experiment(
        "controlled",
        "The controlled collection, beside MAGAF's Table 3",
        "The generator is tuned to the TF-IDF row (decision 3). MAGAF gives no weights for the other blends; we chose ours "
        "close to its rows after seeing results (decision 4). The first place of hybrid-metagraph is therefore not a finding: a 1:1 "
        "dense-proxy would be above it. The gap between the metadata-aware retrievers and plain TF-IDF is a finding.",
        "--collection controlled --retriever tfidf,metadata-tfidf,dense-proxy,graph,hybrid-metagraph,bm25,hybrid --k 2,4,8",
        ("recall", "complete", "ndcg", "mrr"),
        (magaf_published.TABLE_3,),
    ),
    Experiment(
        "frames",
        "FRAMES, titles only, beside the paper's Tables 4 and 5",
        "Recall is the paper's coverage, and complete is its strict correctness. Decision 3 says which links count.",
        "--dataset frames --path $DATA/frames/test.tsv --retriever bm25-title,hybrid-title-paper,tfidf-char,tfidf-word --k 4,8,10,15,25",
        ("recall", "complete", "mrr"),
        (published_module.TABLE_4, published_module.TABLE_5),
    ),
    *(
        Experiment(
            name,
            title,
            "A sample of the questions, a pooled corpus, static embeddings. The bridge retriever was trained on these questions: "
            "its figures, by folds and with the data set left out, are on [their own page](bridge.md).",
            f"{WIKI.format(name)} --retriever bm25,dense,hybrid,rrf,graph,ppr,iterative --k 2,5,10",
            metrics,
        )
        for name, title, metrics in (
            ("2wikimultihopqa", "2WikiMultiHopQA", ("recall", "complete", "mrr")),
            ("hotpotqa", "HotpotQA", ("recall", "complete", "mrr")),
            ("musique", "MuSiQue", ("recall", "complete", "mrr")),
        )
    ),
    Experiment(
        "multihop_rag",
        "MultiHop-RAG",
        "Our copy has only parts of the articles, so retrieval is easier than on the full corpus: compare rows, not published figures.",
        "--dataset multihop_rag --path $DATA/multihop_rag --retriever tfidf,bm25,dense,hybrid,hybrid-metagraph --k 4,10",
        ("recall", "complete", "mrr", "hits"),
    ),
)
ALIASES = {
    "recall": ("coverage",),
    "complete": ("strict",),
}  # what a metric is called in the FRAMES paper


def retrieval_pages() -> dict[Path, str]:
    return {RESULTS / "retrieval.md": retrieval_page()}


def retrieval_page() -> str:
    """research/results/retrieval.md"""
    lines = [
        "# Retrieval: results\n",
        "Brackets show 95 % bootstrap intervals over questions; parentheses show the paper's figures. `$DATA` is the folder of "
        "public data (see CONTRIBUTING). To measure all of it again, run `make results docs`.\n",
    ]
    for experiment in EXPERIMENTS:
        if experiment.stored.is_file():
            lines += _experiment_section(
                experiment, json.loads(experiment.stored.read_text(encoding="utf-8"))
            )
    return "\n".join(lines)


def _experiment_section(experiment: Experiment, summary: dict[str, Any]) -> Iterator[str]:
    yield f"## {experiment.title}\n"
    nulls = f" and {summary['n_null']:,} null questions" if summary["n_null"] else ""
    yield f"{experiment.says} n = {summary['n']:,} questions{nulls}, {summary['settings']['documents']:,} documents. Measured {at_commit(summary.get('commit'))}.\n"
    yield f"    {experiment.command}\n"
    yield "| retriever | k | " + " | ".join(experiment.metrics) + " |"
    yield "|---|---:|" + "---:|" * len(experiment.metrics)
    for name, figures in summary["retrievers"].items():
        for k in summary["k"]:
            cells = [
                _experiment_cell(experiment, name, metric, k, figures[f"{metric}@{k}"])
                for metric in experiment.metrics
            ]
            yield f"| {name} | {k} | " + " | ".join(cells) + " |"
    yield ""


def _experiment_cell(
    experiment: Experiment, name: str, metric: str, k: int, figure: dict[str, float | None]
) -> str:
    names = [f"{one}@{k}" for one in (metric, *ALIASES.get(metric, ()))]
    published = next(
        (
            value
            for paper in experiment.papers
            for one in names
            if (value := paper.get(name, one)) is not None
        ),
        None,
    )
    measured = (
        "--"
        if figure["value"] is None
        else f"{figure['value']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"
    )
    return measured if published is None else f"{measured} ({published:.3f})"


# ------------------------------------------------------------------------------------------- papers

DRAWN_FIGURES = (
    "Figure",
    "Risk",
)  # the paper's own figures, and what it means to act on them; the report has all


# What a language model said once, on another machine, with hashes of its prompts: study -> (model, its answers).
MODEL_ANSWERS = {
    "multi-meta-rag": (
        "Qwen2.5-Coder-1.5B-Instruct",
        RUNS / "multi-meta-rag-answers.jsonl",
    )
}
# What a cross-encoder said once, over hours of reading: study -> its scores.
STORED_SCORES = {"multi-meta-rag": RUNS / "multi-meta-rag-scores.npz"}
# A few of them by the model as it is distributed, to compare.
INT8_SCORES = RUNS / "multi-meta-rag-scores-int8.npz"


def study_command(name: str) -> str:
    slow = " --quality" if name in SLOW_STUDIES else ""
    model, answers = MODEL_ANSWERS.get(name, ("", None))
    asks = (
        f" --model {model} --max-chars 12000 --cache cache" if answers and answers.is_file() else ""
    )
    return f"suffice reproduce {name} --data $DATA{slow}{asks} --out {name}"


def answers_command(name: str) -> str | None:
    """Puts the stored answers and scores into the cache, so that nobody is asked and nothing is
    read again; None where there are none.
    """
    model, answers = MODEL_ANSWERS.get(name, ("", None))
    if answers is None or not answers.is_file():
        return None
    module = f"suffice_research.{name.replace('-', '_')}.requests"
    stored = answers.relative_to(ROOT).as_posix()
    scores = STORED_SCORES.get(name)
    also = f" --scores {scores.relative_to(ROOT).as_posix()}" if scores and scores.is_file() else ""
    return f"python -m {module} --data $DATA --model {model} --cache cache --answers {stored}{also}"


def study_path(name: str) -> Path:
    return RUNS / f"study-{name}.json"


# A study of the same paper with a language model, which stands below the study without one.
WITH_MODEL = {"par-rag": RUNS / "study-par-rag-model.json"}
# Its rows without one have a run of their own, so that they are not of the day when a model was at hand.
WITHOUT_MODEL = {"par-rag": RUNS / "study-par-rag-reader.json"}
READER_COMMAND = "python -m suffice_research.par_rag.model_study --data $DATA --study research/results/runs/study-par-rag-reader.json"
MODEL_COMMAND = "suffice reproduce {} --data $DATA --model qwen2.5-coder-1.5b.gguf --cache runs/model --out {}-model"


def load_studies() -> dict[str, Study]:
    """The stored studies, by paper."""
    return {
        name: Study.load(study_path(name)) for name in STUDY_NAMES if study_path(name).is_file()
    }


def study_pages() -> dict[Path, str]:
    with_model, without = (
        {name: Study.load(path) for name, path in paths.items() if path.is_file()}
        for paths in (WITH_MODEL, WITHOUT_MODEL)
    )
    return {
        RESULTS / f"{name}.md": study_page(study, with_model.get(name), without.get(name))
        for name, study in load_studies().items()
    }


def study_pictures() -> dict[Path, bytes]:
    """The figures that stand in the pages, drawn."""
    return {
        RESULTS / picture: draw_plot(figure)
        for study in load_studies().values()
        for picture, figure in _study_figures(study).items()
    }


def _study_figures(study: Study) -> dict[str, Plot]:
    chosen = [figure for figure in study.figures if figure.title.startswith(DRAWN_FIGURES)]
    return {f"{study.name}-{at}.svg": figure for at, figure in enumerate(chosen, start=1)}


def study_page(study: Study, with_model: Study | None = None, without: Study | None = None) -> str:
    """research/results/NAME.md; `without` has newer rows for the study with a model."""
    return "\n".join(_study_lines(study, with_model, without))


def _study_lines(study: Study, with_model: Study | None, without: Study | None) -> Iterator[str]:
    named = {id(figure): picture for picture, figure in _study_figures(study).items()}
    yield f"# {study.title}\n"
    if first := answers_command(study.name):
        yield f"    {first}"
    yield f"    {study_command(study.name)}\n"
    if first:
        yield (
            "The first command loads the stored answers of the model, so no model is needed. They come from one run on another machine, "
            "with the Q4_K_M file of the model and without the JSON schema that the second command sends to a server.\n"
        )
    scores = STORED_SCORES.get(study.name)
    if scores is not None and scores.is_file():
        stored, int8 = load_scores(scores), load_scores(INT8_SCORES)
        pairs, correlation, apart = compare_scores(stored, int8)
        yield (
            f"It also loads {len(stored):,} scores of the cross-encoder, computed on {stored.made_on}. The second command would run the "
            f"model in int8, as it is distributed. We also scored {pairs:,} pairs in int8, on {int8.made_on}: the correlation is "
            f"{correlation:.4f}, and the mean absolute difference is {apart:.2f}, where scores have a standard deviation of "
            f"{stored.score.std():.1f}. To compute the scores on your machine, leave out `--scores`; it takes hours and is resumable.\n"
        )
    yield (
        f"Measured {at_commit(study.commit)}, seed {study.seed}. Brackets show 95 % bootstrap intervals over questions. Parentheses show the paper's figure and the "
        "difference from it. `$DATA` is the folder of public data (see CONTRIBUTING).\n"
    )
    yield from (f"- {line}" for line in study.summary)
    yield ""
    yield from section_lines(study, named)
    if with_model is not None:
        renewed = with_model if without is None else with_rows(with_model, without)
        yield from _model_lines(renewed, without)
    if study.notes:
        yield "## Differences from the paper, and why\n"
        yield from (f"- {line}" for line in study.notes)
        yield ""
    files = [f"- `{name}` sha256 {digest}" for name, digest in sorted(study.data.items())]
    if files:
        yield "## Files\n"
        yield from files
        yield ""


def section_lines(study: Study, named: Mapping[int, str]) -> Iterator[str]:
    """The tables of a study, and those of its figures that have a name."""
    for section in study.sections:
        yield f"## {section.title}\n"
        if section.says:
            yield f"{section.says}\n"
        for one in section.shown:
            if isinstance(one, Table):
                yield f"**{one.title}**\n"
                yield table_markdown(one)
            elif id(one) in named:
                yield f"![{one.title}]({named[id(one)]})\n"


def with_rows(study: Study, newer: Study) -> Study:
    """The study with the rows of a newer one, for the systems that it has, and no other of these:
    differences from another system need the outcomes of both.
    """
    if (asked := newer.settings["asked"]) != study.settings["asked"]:
        raise InputError(f"the runs asked other questions: {asked}", hint=READER_COMMAND)
    systems, tables = set(newer.settings["systems"]), {one.title: one for one in newer.tables}

    def renewed(one: Table | Plot) -> Table | Plot:
        if not isinstance(one, Table):
            return one
        other = tables.get(one.title)
        rows = [row for row in one.rows if row[0] not in systems]
        for row in other.rows if other else ():
            rows.append((*row, *[None] * (len(one.columns) - len(row))))  # it has no seconds
        return replace(one, rows=tuple(rows))

    sections = tuple(
        replace(section, shown=tuple(map(renewed, section.shown))) for section in study.sections
    )
    said = [one for one in study.summary if WITH_READER not in one]
    return replace(study, sections=sections, summary=(*said, *newer.summary))


def _model_lines(study: Study, newer: Study | None) -> Iterator[str]:
    yield "## With a language model\n"
    yield f"    {MODEL_COMMAND.format(study.name, study.name)}\n"
    yield (
        f"The model is {study.settings['model']}, {study.settings['workers']} questions at a time. A GGUF file is served by "
        "xllamacpp; add `--base-url` for your own server. The command is resumable. "
        "The stored rows come from a GPU, in half precision, from a server that "
        "shows the model the JSON schema but does not enforce it; llama.cpp enforces it and rounds differently, so single answers "
        f"may differ. They were measured {at_commit(study.commit)}.\n"
    )
    if newer is not None:
        yield (
            f"The rows with *reader* ask no model. They were measured {at_commit(newer.commit)}, on the same questions, with a run of their own, on "
            "another machine, so they have no seconds:\n"
        )
        yield f"    {READER_COMMAND}\n"
    yield from (f"- {line}" for line in (*study.summary, *study.notes))
    yield ""
    yield from section_lines(study, {})


# ---------------------------------------------------------------------------------------- expansion

EXPANSION_SETS = {
    "2wikimultihopqa": "2WikiMultiHopQA",
    "hotpotqa": "HotpotQA",
    "musique": "MuSiQue",
}
EXPANSION_GATES = {
    "fitted": "Each question is checked by a gate that was fitted on the other half of the questions.",
    "without": "Each question is checked by a gate with the recipe of the shipped preset `fast`, fitted on the five other data sets "
    "only. There is no such gate of the preset `standard`: its reader was trained on questions of these data sets.",
}
EXPANSION_OPTIONS = {
    "fitted": "--folds 2",
    "without": "--gate gate-without-{0}",
}
WITHOUT_COMMAND = "python -m suffice_research.training.fast_study --data $DATA --gates ."
EXPANSION_INTRODUCTION = (
    "A fixed k uses as many documents for an easy question as for a hard one. `lib.complete` starts with one document and adds "
    "more, at most k, until the gate says that the evidence is complete. The column *fewer* compares it with the fixed k that is as "
    "complete. The first part covers the shipped gates as `lib.complete` uses them with `bridge`: it adds the next document of the "
    "ranking until the calibrated gate is satisfied. The later parts cover searches in which the gate also chooses the documents, as "
    "with other retrievers, without this calibration. There, the bridge retriever uses hand-set weights, which are not trained on any "
    "question. The few settings of the search itself (in `suffice.answering.expand`) were chosen while looking at less than a third "
    "of these questions. To measure all of it again, run `make results PART=expansion`."
)


STOP_COMMAND = "python -m suffice_research.training.stop_calibration --data $DATA --study-only --study stop.json"
STOP_PATH = RUNS / "stop.json"
STOP_SAYS = (
    "Reader, gate, ranker and the calibration of the stop were fitted on none of these questions, with one exception: the fast gate, "
    "whose probability is a feature of the standard gate, was trained on questions of MuSiQue, so that row is too optimistic. Its "
    "ranker was fitted without MuSiQue. *Everyday, unseen* has files that are in no training data. The sets count equally, with all "
    "170 questions that MuSiQue has for this. [Decision 16](../../docs/decisions/0016-stop.md) says where the error sits."
)


def expansion_command(gate: str, name: str) -> str:
    return f"suffice evaluate expansion {WIKI.format(name)} {EXPANSION_OPTIONS[gate].format(name)}"


def expansion_path(gate: str, name: str) -> Path:
    return RUNS / (
        f"expansion-{name}.json" if gate == "fitted" else f"expansion-without-{name}.json"
    )


def expansion_studies() -> dict[tuple[str, str], Study]:
    """The stored studies, by gate and data set."""
    every = {
        (gate, name): expansion_path(gate, name)
        for gate in EXPANSION_GATES
        for name in EXPANSION_SETS
    }
    return {key: Study.load(path) for key, path in every.items() if path.is_file()}


def expansion_pages() -> dict[Path, str]:
    found = expansion_studies()
    return {RESULTS / "expansion.md": "\n".join(_expansion_lines(found))} if found else {}


def expansion_pictures() -> dict[Path, bytes]:
    return {
        RESULTS / _expansion_picture(*key): draw_plot(study.figures[0])
        for key, study in expansion_studies().items()
    }


def _expansion_picture(gate: str, name: str) -> str:
    return f"expansion-{gate}-{name}.svg"


def _expansion_lines(found: dict[tuple[str, str], Study]) -> Iterator[str]:
    yield "# Expanding: the gate as stop signal\n"
    yield f"{EXPANSION_INTRODUCTION}\n"
    if STOP_PATH.is_file():
        stop = Study.load(STOP_PATH)
        yield f"## Are probabilities calibrated where a search stops?\n\n{STOP_SAYS} Measured {at_commit(stop.commit)}.\n\n    {STOP_COMMAND}\n"
        yield from (f"- {line}" for line in stop.summary)
        for section in stop.sections:
            yield f"\n### {section.title}\n"
            yield from (table_markdown(one) for one in section.shown if isinstance(one, Table))
    for gate, says in EXPANSION_GATES.items():
        some = {name: study for (one, name), study in found.items() if one == gate}
        if some:
            yield f"## {'A gate fitted on the same corpus' if gate == 'fitted' else 'A gate fitted on other corpora'}\n"
            yield f"{says}\n"
            if gate == "without":
                yield f"    {WITHOUT_COMMAND}\n"
        for name, study in some.items():
            yield f"### {EXPANSION_SETS[name]}\n"
            yield f"    {expansion_command(gate, name)}\n"
            yield f"n = {study.settings['questions']:,} questions, {study.settings['documents']:,} documents. Measured {at_commit(study.commit)}.\n"
            yield from (f"- {line}" for line in study.summary)
            yield f"\n![{study.figures[0].title}]({_expansion_picture(gate, name)})\n"
            yield table_markdown(study.tables[0])


def pages() -> dict[Path, str]:
    return retrieval_pages() | study_pages() | expansion_pages()


def pictures() -> dict[Path, bytes]:
    return study_pictures() | expansion_pictures()
