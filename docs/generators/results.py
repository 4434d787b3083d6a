"""Pages of results, from stored runs and studies: retrieval, the papers, expansion, and gates
fitted on made questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.generators.paths import RESULTS, ROOT, RUNS
from suffice.evaluation.figures import Figure, draw_figure
from suffice.evaluation.significance import Interval
from suffice.evaluation.study import Study
from suffice.evaluation.tables import Cell, Table, WithPublished, format_cell
from suffice_research import SLOW_STUDIES, STUDY_NAMES
from suffice_research.frames import published as published_module
from suffice_research.magaf import published as magaf_published
from suffice_research.multi_meta_rag.pair_scores import compare_scores, load_scores
from suffice_research.published import PublishedTable


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
        "The TF-IDF row is a setting of the generator (decision 4). MAGAF gives no weights for the other blends; ours were "
        "chosen near its rows after seeing results (decision 6), so that hybrid-metagraph stands first is no finding: a 1:1 "
        "dense-proxy would stand above it. The distance of the metadata-aware retrievers from plain TF-IDF is a finding.",
        "--collection controlled --retriever tfidf,metadata-tfidf,dense-proxy,graph,hybrid-metagraph,bm25,hybrid --k 2,4,8",
        ("recall", "complete", "ndcg", "mrr"),
        (magaf_published.TABLE_3,),
    ),
    Experiment(
        "frames",
        "FRAMES, titles only, beside the paper's Tables 4 and 5",
        "Recall is the paper's coverage, complete its strict correctness. Which links count: decision 3.",
        "--dataset frames --path $DATA/frames/test.tsv --retriever bm25-title,hybrid-title-paper,tfidf-char,tfidf-word --k 4,8,10,15,25",
        ("recall", "complete", "mrr"),
        (published_module.TABLE_4, published_module.TABLE_5),
    ),
    *(
        Experiment(
            name,
            title,
            "A sample of the questions, a pooled corpus, static embeddings. The bridge retriever learned from these questions: "
            "its figures, on folds and with the data set left out, have a page of their own.",
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
        "Bodies are partial in our copy, so retrieval is easier than on the full corpus: compare rows, not published figures.",
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
    """docs/results/retrieval.md"""
    lines = [
        "# Retrieval: what was measured\n",
        "In brackets: 95 % bootstrap interval over questions. In parentheses: the paper's figure. `$DATA` is the folder of "
        "real data (see CONTRIBUTING). All of it again: `make results docs`.\n",
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
    yield f"{experiment.says} n = {summary['n']:,} questions{nulls}, {summary['settings']['documents']:,} documents.\n"
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
MODEL_COMMAND = "suffice reproduce {} --data $DATA --model qwen2.5-coder-1.5b.gguf --cache runs/model --out {}-model"


def load_studies() -> dict[str, Study]:
    """The stored studies, by paper."""
    return {
        name: Study.load(study_path(name)) for name in STUDY_NAMES if study_path(name).is_file()
    }


def study_pages() -> dict[Path, str]:
    with_model = {name: Study.load(path) for name, path in WITH_MODEL.items() if path.is_file()}
    return {
        RESULTS / f"{name}.md": study_page(study, with_model.get(name))
        for name, study in load_studies().items()
    }


def study_pictures() -> dict[Path, bytes]:
    """The figures that stand in the pages, drawn."""
    return {
        RESULTS / picture: draw_figure(figure)
        for study in load_studies().values()
        for picture, figure in _study_figures(study).items()
    }


def _study_figures(study: Study) -> dict[str, Figure]:
    chosen = [figure for figure in study.figures if figure.title.startswith(DRAWN_FIGURES)]
    return {f"{study.name}-{at}.svg": figure for at, figure in enumerate(chosen, start=1)}


def study_page(study: Study, with_model: Study | None = None) -> str:
    """docs/results/NAME.md"""
    return "\n".join(_study_lines(study, with_model))


def _study_lines(study: Study, with_model: Study | None) -> Iterator[str]:
    named = {id(figure): picture for picture, figure in _study_figures(study).items()}
    yield f"# {study.title}\n"
    if first := answers_command(study.name):
        yield f"    {first}"
    yield f"    {study_command(study.name)}\n"
    if first:
        yield (
            "The first command takes the model's answers from where they are stored, so that nobody is asked. They were given once, on "
            "another machine, by the Q4_K_M file of the model, without the JSON schema that the second command sends to a server.\n"
        )
    scores = STORED_SCORES.get(study.name)
    if scores is not None and scores.is_file():
        stored, int8 = load_scores(scores), load_scores(INT8_SCORES)
        pairs, correlation, apart = compare_scores(stored, int8)
        yield (
            f"It also takes the {len(stored):,} scores of the cross-encoder, made on {stored.made_on}. The model is distributed in int8, and "
            f"so the second command would run it; {pairs:,} pairs were read so, too, on {int8.made_on}: the correlation is "
            f"{correlation:.4f}, the mean absolute difference {apart:.2f} where scores have a standard deviation of "
            f"{stored.score.std():.1f}. To make them on your machine, leave `--scores` out: hours, and a stopped run goes on.\n"
        )
    yield (
        f"Seed {study.seed}. In brackets: 95 % bootstrap interval over questions. In parentheses: the paper's figure, and how "
        "far ours is from it. `$DATA` is the folder of real data (see CONTRIBUTING).\n"
    )
    yield from (f"- {line}" for line in study.summary)
    yield ""
    yield from section_lines(study, named)
    if with_model is not None:
        yield from _model_lines(with_model)
    if study.notes:
        yield "## Where it differs from the paper in kind, and why\n"
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
                yield one.to_markdown()
            elif id(one) in named:
                yield f"![{one.title}]({named[id(one)]})\n"


def _model_lines(study: Study) -> Iterator[str]:
    yield "## With a language model\n"
    yield f"    {MODEL_COMMAND.format(study.name, study.name)}\n"
    yield (
        f"The model is {study.settings['model']}, {study.settings['workers']} questions at a time. A GGUF file is served by "
        "xllamacpp; add `--base-url` for a server of your own. Stop it and type it again: it goes on where it ended. "
        "The stored rows were made on a GPU, in half precision, by `python -m suffice_research.training.model_server`, which "
        "tells the model the JSON schema and enforces none; llama.cpp enforces it and rounds otherwise, so single answers may "
        f"differ.{f' They are of commit {study.commit[:8]}.' if study.commit else ''}\n"
    )
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
    "fitted": "Each question judged by a gate that was fitted on the other half of the questions.",
    "without": "Each question judged by the shipped recipe, fitted on the five other data sets: it saw nothing of this one.",
}
EXPANSION_OPTIONS = {
    "fitted": "--folds 2",
    "without": "--gate gate-without-{0} --limit 300 --k 3,5,10 --answer-at 0.3,0.6,0.9",
}
EXPANSION_INTRODUCTION = (
    "A fixed k reads as many documents for an easy question as for a hard one. `lib.complete` starts with one document and "
    "reads on until the gate says that the evidence is complete, at most k of them. The question is how many documents a fixed "
    "k has to hold to be as complete: the column *fewer*. First the gates that ship, as `lib.complete` uses them with `bridge`: "
    "the next document of the ranking is held until the calibrated gate is satisfied. Behind that, searches in which the gate "
    "also chooses what to hold, as with other retrievers, without that calibration. There the bridge retriever runs with the "
    "weights that were set by hand, which saw no question. The few settings of the search itself (in `suffice.answering.expand`) were chosen while looking at "
    "less than a third of these questions. All of it again: `make results PART=expansion`."
)


STOP_COMMAND = "python -m suffice_research.training.stop_calibration --data $DATA --study-only --study stop.json"
STOP_PATH = RUNS / "stop.json"
STOP_SAYS = (
    "Nothing here was seen by reader, gate or ranker, but for MuSiQue: the standard gate asks the fast one, which knows its "
    "questions, so its row flatters. Its ranker was fitted without it. Everyday, unseen: files that nothing was trained on."
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
        RESULTS / _expansion_picture(*key): draw_figure(study.figures[0])
        for key, study in expansion_studies().items()
    }


def _expansion_picture(gate: str, name: str) -> str:
    return f"expansion-{gate}-{name}.svg"


def _expansion_lines(found: dict[tuple[str, str], Study]) -> Iterator[str]:
    yield "# Expanding: the gate as stop signal\n"
    yield f"{EXPANSION_INTRODUCTION}\n"
    if STOP_PATH.is_file():
        stop = Study.load(STOP_PATH)
        yield f"## Is the probability honest where a search stops?\n\n{STOP_SAYS}\n\n    {STOP_COMMAND}\n"
        yield from (f"- {line}" for line in stop.summary)
        for section in stop.sections:
            yield f"\n### {section.title}\n"
            yield from (one.to_markdown() for one in section.shown if isinstance(one, Table))
    for gate, says in EXPANSION_GATES.items():
        some = {name: study for (one, name), study in found.items() if one == gate}
        if some:
            yield f"## {'A gate of the same corpus' if gate == 'fitted' else 'A gate of other corpora'}\n"
            yield f"{says}\n"
        for name, study in some.items():
            yield f"### {EXPANSION_SETS[name]}\n"
            yield f"    {expansion_command(gate, name)}\n"
            yield f"n = {study.settings['questions']:,} questions, {study.settings['documents']:,} documents.\n"
            yield from (f"- {line}" for line in study.summary)
            yield f"\n![{study.figures[0].title}]({_expansion_picture(gate, name)})\n"
            yield study.tables[0].to_markdown()


# ------------------------------------------------------------------- gates fitted on made questions

LOOP_COMMAND = (
    "python -m suffice_research.training.made_questions --data $DATA --work loop --study loop.json"
)
LOOP_PATH = RUNS / "loop.json"
STANDARD_LOOP_COMMAND = (
    "python -m suffice_research.training.made_standard --data $DATA --work loop --study loop.json"
)
STANDARD_LOOP_PATH = RUNS / "loop-standard.json"
LOOP_INTRODUCTION = (
    "Questions were made from the documents of a corpus by rules: no label, no language model, none of its real questions. A "
    "gate that learned from them, and a gate that learned from the real questions of the other data sets, are judged on the "
    "real questions over that corpus: does the gate know when the hits are complete? *Both* learned from both."
)
LOOP_CHOICES = (
    "How many of the drawn questions compare was first a third, then a quarter, which is nearer to the mean of the three real "
    "data sets; the change came after a first result of 0.758 on MuSiQue, just under the figure to reach. It is one rule for "
    "all corpora, but it was chosen while looking, and what stands above is with a quarter: on MuSiQue the change bought "
    "nothing that can be told from noise.",
    "MuSiQue's corpus gives the fewest made questions, hardly any of more than three hops, and its gate gains the least.",
    "Which forms of questions exist was guided by reading real questions of these data sets. How a single question is asked or "
    "answered was not.",
    "No real question of a data set, and no label of it, is seen by a gate that is judged on it.",
    "The intervals are over the real questions; drawing other made questions, or fitting with another seed, would move the "
    "figures, too, and is not in them.",
)


def loop_pages() -> dict[Path, str]:
    return (
        {RESULTS / "loop.md": "\n".join(_loop_lines(Study.load(LOOP_PATH)))}
        if LOOP_PATH.is_file()
        else {}
    )


def _loop_lines(study: Study) -> Iterator[str]:
    yield f"# {study.title}\n"
    yield f"{LOOP_INTRODUCTION}\n"
    yield f"    {LOOP_COMMAND}\n"
    yield f"Seed {study.seed}; about {study.settings['questions']:,} made questions of a corpus. `$DATA`: see CONTRIBUTING.\n"
    loop = study.table("The loop")
    yield from (f"- {_loop_verdict(*row[-3:], name=str(row[0]))}" for row in loop.rows)
    yield ""
    for section in study.sections:
        yield f"## {section.title}\n"
        for table in section.shown:
            if isinstance(table, Table):
                yield f"**{table.title}**\n"
                yield table.to_markdown()
    if STANDARD_LOOP_PATH.is_file():
        yield from _standard_loop_lines(Study.load(STANDARD_LOOP_PATH))
    yield "## What was chosen, and what the intervals do not hold\n"
    yield from (f"- {line}" for line in LOOP_CHOICES)
    yield ""


def _standard_loop_lines(study: Study) -> Iterator[str]:
    """The same with the standard preset: the reader reads, and everything else is made."""
    yield f"## {study.title}\n"
    yield (
        "Above, gates without a reader. Here a standard gate: half of the made questions fit a fast gate, the others a gate that "
        "has the fast one and the shipped reader as features. Neither has seen a label of a real question; where nothing else is said, "
        "the made questions that look most like some other real ones are taken. The reader has learned from other real questions of "
        "these sources, never from those that are judged.\n"
    )
    yield f"    {STANDARD_LOOP_COMMAND}\n"
    read, judged = study.settings["read"], study.settings["judged"]
    yield f"Seed {study.seed}; {read} made questions of a corpus are read, at most {judged} real ones judged.\n"
    for table in study.tables:
        yield f"**{table.title}**\n"
        yield table.to_markdown()


def _loop_verdict(others: Cell, made: Cell, both: Cell, *, name: str) -> str:
    """In words: is it better than the other data sets alone, and does it reach its figure, or
    merely not miss it?
    """
    found = both.measured if isinstance(both, WithPublished) else both
    if (
        not isinstance(both, WithPublished)
        or not isinstance(found, Interval)
        or not isinstance(others, Interval)
    ):
        return f"{name}: nothing to reach."
    if (
        found.value is None
        or found.low is None
        or found.high is None
        or others.high is None
        or both.paper is None
    ):
        return f"{name}: not defined."
    said = f"{name}: {format_cell(others)} from other data sets, {format_cell(made)} from made questions alone, {format_cell(found)} from both"
    apart = "; the intervals of the first and the last overlap" if found.low < others.high else ""
    noise = (
        ", inside the noise: the interval holds it" if found.low < both.paper < found.high else ""
    )
    return f"{said}{apart}; it {'reaches' if found.value >= both.paper else 'misses'} {both.paper:.2f}{noise}."


def pages() -> dict[Path, str]:
    return retrieval_pages() | study_pages() | loop_pages() | expansion_pages()


def pictures() -> dict[Path, bytes]:
    return study_pictures() | expansion_pictures()
