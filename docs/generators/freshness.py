"""Is a stored study older than the code that it judges?

A study says at which commit it ran. Modules that it needs are found by following imports; one
counts as changed when its code differs from that commit's in more than layout, comments,
docstrings, the wording of errors and notes, how worker processes are started, and in which module
a statement stands. Models that it loads count, too: their manifests hold the hashes of their files. Each
run names them, because imports cannot tell: nearly every study imports the gate.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from docs.generators import results
from docs.generators.paths import RESULTS, ROOT, RUNS
from suffice_research import STUDY_NAMES

SOURCES = {"suffice": ROOT / "src", "suffice_research": ROOT / "research"}
MANIFESTS = re.compile(r"(?:src/suffice|research/suffice_research)/models/([^/]+)/manifest\.json")
# These show figures and do not make them.
SHOWING = (
    "suffice.cli",
    "suffice.evaluation.figures",
    "suffice.evaluation.report",
    "suffice.evaluation.result_files",
    "suffice.evaluation.study",
    "suffice.evaluation.tables",
    "suffice_research.papers",
)
# No study reads a user's own files; where work is done makes no figure.
OTHERS = ("suffice.datasets.folder", "suffice.evaluation.worker_pool")
WORKERS = {"ProcessPoolExecutor", "exit_with_parent", "get_context", "worker_pool"}
SPOKEN_NAMES = {"hint", "message", "problem"}  # variables that hold a part of an error
# Changes that cannot have moved a figure, as somebody has checked: digests of the module before (of
# each version that runs have, as these may differ in wording) and now, and why. A further change is
# counted again.
REVIEWED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "suffice.retrieval.candidate_pool": (
        ("5623b11b657c", "1914e4e7a496", "24e6bef23555"), "6ea71dc405f1",
        "a corpus that names nothing is searched, two lists of features are one, and a search is "
        "faster; hits and features are the same, bit for bit, on 300 questions each of 7 corpora",
    ),
    "suffice.retrieval.bridge": (
        ("aca080c77119", "1e5f12f3e470"), "8d8d9df22e12",
        "faster, with the same hits and features on 300 questions each of 7 corpora; a wrong depth is refused",
    ),
    "suffice.retrieval.ranking": (
        ("ee88f6866da5", "3f6bb7c31df9"), "0af1eacc9ae2",
        "the places above a score are found faster, in the same order; a wrong depth is refused",
    ),
    "suffice.text": (
        ("a04aabd435fe",), "065509083104",
        "tokens of ASCII texts are translated as bytes, by the same table",
    ),
    "suffice.retrieval.builtin": (
        ("0742ac14ff52",), "785cd9a0284b",
        "an option of bridge that no study sets, and wrong options are named",
    ),
    "suffice.retrieval.search": (
        ("8371d7b1dc26", "54b34326194f"), "b64040647e5b",
        "a reranker says whether its retriever chooses sets, which no study asks; wrong depths and vectors are refused",
    ),
    "suffice.integrations.onnx": (
        ("c7fa4fdae30f",), "e93123a3d451",
        "one more reranker, which no study uses",
    ),
    "suffice.evaluation.answers": (
        ("e69882c38bda",), "5373c455108d",
        "files of answers may have numbers as ids; no study reads one",
    ),
    "suffice.gate.hits": (
        ("7b7aa40cfb88", "f16891c77dd3", "28ac8692b1c9"), "6329575be0f4",
        "texts that are not read are named, objects with .text are hits, and an error names null values",
    ),
    "suffice_research.training.gate": (
        ("d79dc63376d5",), "98ee5cb62f9b",
        "it no longer measures the fast gate",
    ),
    "suffice_research.training.gate_baselines": (
        ("efae0602a64a",), "dd06630bcec2",
        "the parts of its folds are a constant, not a function of the preset",
    ),
    "suffice_research.training.scorer_study": (
        ("0ba1238287e2",), "665916bb2569",
        "candidates stay in memory and trees are kept as ONNX, which decides as they do",
    ),
    "suffice.answering.ask": (
        ("314aa58436a5", "09305dc42e17"), "67ca73fd8573",
        "wrong arguments are refused; before, how likely answers of the gate's reader are right",
    ),
    "suffice.answering.review": (
        ("83f342a92774",), "c6aae999f4a4",
        "how likely answers of the gate's reader are right; these runs read by rules, or not at all",
    ),
    "suffice.answering.roles": (
        ("66851f80628d", "9ee1ef8215db"), "21e3a554207f",
        "converse verbs, and lines that are sentences; of 6,888 judgements of PAR-RAG's systems two differ",
    ),
    "suffice.answering.span_reader": (
        ("ad7d36dc162e", "58cac8921201"), "78db144daf16",
        "no answer runs across lines; of Multi-Meta-RAG's 161 none did, and the other runs read by rules",
    ),
    "suffice.answering.extractive_reader": (
        ("ba2c6ad621ad", "477697fafa9e"), "9e8e44826ffb",
        "rows of tables are lines, of which no document of these runs has any; before, a field of readings",
    ),
    "suffice.types": (
        ("ba4e88621e9c", "5fe511801c1c"), "26af7bfd6477",
        "a field of answers that the gate's reader alone sets",
    ),
    "suffice.gate.gate": (
        ("99c194ef4144", "b7e44d521d75", "bc86e28fc1be", "f78e4d4adf62", "f7c8e5574ec4"), "2d28d477c8e8",
        "wrong arguments are refused; before, the interval is narrower: p and action are as they were",
    ),
    "suffice.gate.reader": (
        ("46c0e275bdec", "47b4f35c4795", "d30e7e4c237f"), "ca97ea36c2ec",
        "windows are read side by side, with the same output; it can rerank; how likely its answers are right",
    ),
    "suffice.evaluation.reading_cache": (
        ("be410398f5c3",), "6d1598f95d3a",
        "then it also weighed answers, which was taken back; these runs give none",
    ),
    "suffice.gate.familiarity": (
        ("adb563b0271c",), "0f625baddc74",
        "the interval is narrower; p, action and familiarity are as they were",
    ),
    "suffice.benchmark.knowledge_graph": (
        ("75cd65e0d1fa",), "31017f7ead9d",
        "facts of a parse end a chain on their subject's page only; rules make none",
    ),
    "suffice.benchmark.parsed_relations": (
        ("329aca143dbd",), "91666f14258b",
        "the word lists of the parse are in a file; rules alone do not read it",
    ),
    "suffice.gate.gate_ref": (
        ("d90519284af5",), "ac7e2f76efe5",
        "the name of a preset is a gate",
    ),
    "suffice.answering.expand": (
        ("723546ce56c9", "249a5da2926f"), "8379a0e73e9a",
        "what is no gate is refused, and a note says when p is the gate's own",
    ),
    "suffice.library": (
        ("2f39a895bbf5", "dd520295ac0c"), "06e438e224fa",
        "wrong arguments are refused, documents that share an id warned of; name links follow a write, the same byte for byte",
    ),
    "suffice.storage.records": (
        ("cf806b55994b",), "c6157e3db999",
        "a pipe is refused, which looked like an empty file before",
    ),
    "suffice.evaluation.verdict_log": (
        ("e1f5dd00eff1",), "f4073f54db80",
        "an empty log has no verdict yet; no study reads a log",
    ),
    "suffice.answering.traces": (
        ("b2f30755994e",), "7c350387bb8b",
        "a printed trace cuts very long texts; a stored one has them all",
    ),
    "suffice.datasets.labels": (
        ("0dd493c3c7c6", "1ecff7ee811f", "abbf3dbf0322"), "b4c572d1d9d6",
        "tables may have semicolons and traces no feedback; no study reads one",
    ),
    "suffice.evaluation.batch_check": (
        ("de59a3b01b2c",), "19756669f54a",
        "a blank question in a batch is a bad line",
    ),
    "suffice.storage.artefacts": (
        ("30bb43e3dafb", "c2bdf9ee1b4c"), "8170dae30b50",
        "threads are counted in a function; a device is written and not replaced; errors name the file",
    ),
    "suffice.engines.embedded.text_index": (
        ("888e62a69532",), "af99d9798018",
        "its files may be read by other users",
    ),
    "suffice.evaluation.adaptation": (
        ("52ec03737c13", "6022127ba0c5"), "90174057ac0a",
        "two checks are gone that only `suffice improve` used, and one is new for `suffice fit`",
    ),
    "suffice_research.training.reader_weights": (
        ("01ed2e638be2",), "f0765008c50d",
        "reads files of other encoders, too",
    ),
    "suffice_research.par_rag.model_study": (
        ("433f61c5daa6", "88a50c6ebf97"), "eddc2414fa8f",
        "the reader's rows have a run of their own, without seconds; all are measured as before",
    ),
    "suffice.answering.clauses": (
        ("431125cfeb0d",), "b178982634ca",
        "opposites and comparatives; of 6,888 judgements of PAR-RAG's systems two differ",
    ),
    "suffice.answering.converses": (
        ("e3b0c44298fc",), "ec3ae66484c7",
        "it is new; of 6,888 judgements of PAR-RAG's systems two differ, the other studies judge no answers",
    ),
    "suffice.retrieval.corpus": (
        ("9cf5df9cb29b",), "77ec17ed455f",
        "rows can be taken and joined, which only name links after a write do",
    ),
    "suffice.retrieval.name_links": (
        ("e00ad4ef9491",), "b0950a4c56ef",
        "rows of documents are kept for the next write; the links of HotpotQA, 2Wiki, MuSiQue and MultiHop-RAG are the same, byte for byte",
    ),
    "suffice.retrieval.name_rows": (
        ("e3b0c44298fc",), "fb39cedcef51",
        "it is new; keeps the rows of documents for the next write; the links of HotpotQA, 2Wiki, MuSiQue and MultiHop-RAG are the same, byte for byte",
    ),
    "suffice.retrieval.phrase_matcher": (
        ("f299e620adb7",), "3b212e980123",
        "the limit of a rare phrase is a function",
    ),
    "suffice.retrieval.soft_filter": (
        ("74b3802793ee",), "6efc4fb928e3",
        "a wrong depth is refused",
    ),
    "suffice_research.retrievers.candidates": (
        ("68e563845e9e",), "5bc6d5e2cebe",
        "a wrong depth is refused",
    ),
    "suffice_research.training.next_hop": (
        ("e62cb796c16a",), "66eebb985e09",
        "fewer tokens at once, with the same vectors; a missing extra is named",
    ),
    "suffice_research.training.scorer": (
        ("fc5d3f9b3e6b",), "6964c203f0a5",
        "fewer tokens at once when nothing is learned",
    ),
    "suffice.retrieval.store_checks": (
        ("e013aeea7a30",), "6215b880136d",
        "halves are widened faster: on 205 questions, three retrievers have the same hits and scores",
    ),
    "suffice.engines.embedded.vector_file": (
        ("10db716e6770",), "7a289730c894",
        "vectors are compared without copies, with the same hits and scores",
    ),
    "suffice.gate.model": (
        ("8bfe637504be", "9ac3324039f4"), "0f0cc50fda53",
        "statements have moved to another module",
    ),
    "suffice.gate.trees": (
        ("e3b0c44298fc", "b8f653ce072f"), "b34fd514616e",
        "statements have moved to another module",
    ),
    "suffice.gate.stuffing_filter": (
        ("eddbb630b271",), "8c0414c80b5f",
        "statements have moved to another module",
    ),
    "suffice.evaluation.retrieval": (
        ("d555e237afab",), "5a147e54b21e",
        "statements have moved to another module",
    ),
    "suffice.evaluation.retrieval_runs": (
        ("e3b0c44298fc",), "94ccdee2bb83",
        "statements have moved to another module",
    ),
}  # fmt: skip
# Rules judge the answers in these runs, so that these changes may have moved them all the same.
JUDGING = {"suffice.answering.clauses", "suffice.answering.converses", "suffice.answering.roles"}
MOVED = {f"suffice_research.par_rag.{name}": JUDGING for name in ("study", "model_study")}
HERE = "docs/generators/freshness.py"
MARK = "- *Run "  # how a line about runs begins; `make docs` makes it anew
MAX_NAMED = 4
MAX_COMPARED = 40  # modules; if more changed, statements that only moved make no difference
TRAINING = "suffice_research.training"


class StoredRun(NamedTuple):
    """A file of docs/results/runs."""

    name: str
    module: str  # that measures it
    page: str  # that shows it
    models: tuple[str, ...]  # of ours that it loads; what it fits from data is not loaded


ANSWERS = "answers"  # how likely an answer of the reader is right
WORDS = ("words",)  # whatever fits a gate
FAST = ("gate-fast", *WORDS)
STANDARD = ("gate-standard", "reader", *FAST)
STUDY_MODELS = {
    "magaf": WORDS,
    "frames": WORDS,
    "multi-meta-rag": (*STANDARD, ANSWERS),
    "grade": FAST,
    "par-rag": WORDS,
}
STORED_RUNS = (
    *(
        StoredRun(one.name, "suffice.evaluation.retrieval", "retrieval", ())
        for one in results.EXPERIMENTS
    ),
    *(
        StoredRun(
            f"study-{name}",
            f"suffice_research.{name.replace('-', '_')}.study",
            name,
            STUDY_MODELS[name],
        )
        for name in STUDY_NAMES
    ),
    StoredRun(
        "study-par-rag-model",
        "suffice_research.par_rag.model_study",
        "par-rag",
        (*STANDARD, "stop"),  # without ANSWERS: its rows of the reader are of the next run
    ),
    StoredRun(
        "study-par-rag-reader",
        "suffice_research.par_rag.model_study",
        "par-rag",
        (*STANDARD, "stop", ANSWERS),
    ),
    StoredRun("gate-baselines", f"{TRAINING}.gate_baselines", "gate", STANDARD),
    StoredRun("gate-fast", f"{TRAINING}.fast_study", "gate", FAST),
    StoredRun("gate-standard", f"{TRAINING}.gate", "gate", ("reader", *WORDS)),
    StoredRun("familiarity", f"{TRAINING}.familiarity", "gate", ("reader", *WORDS)),
    StoredRun("adaptation", f"{TRAINING}.adaptation_study", "gate", STANDARD),
    StoredRun("bridge-fast", f"{TRAINING}.bridge", "bridge", ()),
    StoredRun("bridge-quality", f"{TRAINING}.scorer_study", "bridge", ()),
    StoredRun("bridge-untitled", f"{TRAINING}.bridge_untitled", "bridge", ()),
    StoredRun("stop", f"{TRAINING}.stop_calibration", "expansion", (*STANDARD, "bridge-fast")),
    *(
        StoredRun(
            results.expansion_path(gate, name).stem,
            "suffice_research.expansion",
            "expansion",
            WORDS,
        )
        for gate in results.EXPANSION_GATES
        for name in results.EXPANSION_SETS
    ),
    StoredRun("loop", f"{TRAINING}.made_questions", "loop", WORDS),
    StoredRun("loop-standard", f"{TRAINING}.made_standard", "loop", STANDARD),
    StoredRun("answers", f"{TRAINING}.answers", "answers", (*STANDARD, ANSWERS)),
    StoredRun("judge", "suffice_research.judge_study", "judge", STANDARD),
)


def with_freshness(pages: Mapping[Path, str]) -> dict[Path, str]:
    """The pages of results with a list of their runs under the title. Not part of `pages`: whether
    a run is old depends on git, and tests compare pages without the list.
    """
    made = dict(pages)
    for path, text in pages.items():
        lines = list(freshness_lines(path)) if path.parent == RESULTS else []
        if lines:
            before, title, rest = text.partition("# ")
            title += rest.partition("\n\n")[0]
            made[path] = "\n".join((before + title, "", *lines, rest.partition("\n")[2]))
    return made


def without_freshness(text: str) -> str:
    """A page as `pages` makes it."""
    return re.sub(rf"(?m)^(?:{re.escape(MARK)}.*\n)+\n", "", text, count=1)


def freshness_lines(page: Path) -> Iterator[str]:
    """A line for the runs of a page that have commit, module and models in common; those without a
    commit come last.
    """
    together: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    others: dict[str, str] = {}
    for name, module, shown, models in STORED_RUNS:
        stored = RUNS / f"{name}.json"
        if shown == page.stem and stored.is_file():
            run = json.loads(stored.read_text(encoding="utf-8"))
            commit = run.get("commit") or ""
            key = (commit, module, models) if commit else ("", "", ())
            together.setdefault(key, []).append(name)
            others |= run.get("settings", {}).get("sections of other runs", {}) if commit else {}
    for key, names in sorted(together.items(), key=lambda one: not one[0][0]):
        yield freshness_line(names, *key)
    for title, commit in others.items():
        yield f"{MARK}for the section {title}*: another one, at commit {commit[:8]}."


def freshness_line(
    names: Sequence[str], commit: str, module: str, models: Collection[str] = ()
) -> str:
    """Whether what these runs judge has changed since."""
    start = f"{MARK}{', '.join(names)}*"
    if not commit:
        return f"{start}: of unknown age, no commit was stored."
    changed = changed_since(commit, module, models)
    if changed is None:
        return f"{start}: at commit {commit[:8]}, of unknown age: this clone does not have it."
    if not changed:
        many = len(reviewed_since(commit, module))
        told = "nothing has changed since."
        if many:
            have = "module has" if many == 1 else "modules have"
            told = (
                f"{many} {have} changed since, with no effect on its figures (`{HERE}` says why)."
            )
        return f"{start}: at commit {commit[:8]}. Of what it runs, {told}"
    named = ", ".join(f"`{one}`" for one in changed[:MAX_NAMED])
    more = f" and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
    return f"{start}: at commit {commit[:8]}, **older than the code**: {named}{more} changed since."


def changed_since(commit: str, module: str, models: Collection[str] = ()) -> list[str] | None:
    """Modules that a study may load, and models that it loads, that are not as they were; None:
    cannot be told. Those of the study itself come first.
    """
    listed = _git("diff", "--name-only", "--no-renames", commit, "--", "src", "research")
    if listed is None:
        return None
    reviewed = set(reviewed_since(commit, module))
    needed = {
        path: name
        for name in needed_modules(module) - reviewed
        if (path := _relative(name)) is not None
    }
    paths = [path for path in listed.split("\n") if path in needed]
    changed = {
        needed[path]
        for path, old in zip(paths, _old_texts(commit, paths))
        if old is None
        or parse_module(old) != parse_module((ROOT / path).read_text(encoding="utf-8"))
    }
    known = changed & MOVED.get(module, set())
    if 0 < len(changed - known) <= MAX_COMPARED:  # slow, as it reads every module
        changed = known | changed & _changed_at(commit)
    own = module.rpartition(".")[0]
    loaded = [f"models/{name}" for name in _changed_models(commit, listed) if name in models]
    return sorted(changed, key=lambda name: (not name.startswith(own), name)) + loaded


def _changed_models(commit: str, listed: str) -> list[str]:
    """The models with other files than at this commit. The weights of answers are a model of their
    own: they lie in the reader's folder, and few studies answer.
    """
    found = set()
    for name, path in ((one[1], one[0]) for one in MANIFESTS.finditer(listed)):
        now = ROOT / path
        texts = (*_old_texts(commit, [path]), now.read_text("utf-8") if now.is_file() else None)
        before, after = (json.loads(one) if one else {} for one in texts)
        files = {
            file for file, _ in before.get("files", {}).items() ^ after.get("files", {}).items()
        }
        found.add(ANSWERS if (name, files) == ("reader", {"answers.json"}) else name)
    return sorted(found)


def reviewed_since(commit: str, module: str) -> list[str]:
    """The modules that a study may load with changes since that cannot have moved its figures."""
    found = []
    for name in sorted((needed_modules(module) & REVIEWED.keys()) - MOVED.get(module, set())):
        path = _relative(name) or ""
        (old,), (before, now, _) = _old_texts(commit, [path]), REVIEWED[name]
        if _digest(old or "") in before and _digest((ROOT / path).read_text("utf-8")) == now:
            found.append(name)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def changed_modules(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Which of these modules do something else than before: they have a statement that no module
    had, lack one that no module has any more, or give another meaning to a name.
    """
    modules = [{name: parse_module(text) for name, text in one.items()} for one in (before, now)]
    same = {name for name in before if modules[0][name] == modules[1].get(name)}
    names, statements = list[dict[str, dict[str, str]]](), list[dict[str, set[str]]]()
    for each in modules:
        rest = {name: module for name, module in each.items() if name not in same}
        names.append({name: _meanings(module, rest) for name, module in rest.items()})
        statements.append({name: _statements(rest[name], names[-1][name]) for name in rest})
    known, left = (set[str]().union(*one.values()) for one in statements)
    changed = {name for name, own in statements[0].items() if not own <= left}
    changed |= {name for name, own in statements[1].items() if not own <= known}
    for name in names[0].keys() & names[1].keys():
        then, today = names[0][name], names[1][name]
        if any(then[one] != today[one] for one in then.keys() & today.keys()):
            changed.add(name)
    return changed


@cache
def needed_modules(module: str) -> frozenset[str]:
    """The modules of ours that importing this one may load, now or later, less those that show."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in found or path is None or name.startswith(SHOWING + OTHERS):
            continue
        found.add(name)
        waiting += _imports(path)
    return frozenset(found)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += (node.module, *(f"{node.module}.{one.name}" for one in node.names))
    return tuple(found)


def _path(module: str) -> Path | None:
    root = SOURCES.get(module.partition(".")[0])
    if root is None:
        return None
    stem = root.joinpath(*module.split("."))
    found = (one for one in (stem.with_suffix(".py"), stem / "__init__.py") if one.is_file())
    return next(found, None)


def _relative(module: str) -> str | None:
    path = _path(module)
    return None if path is None else path.relative_to(ROOT).as_posix()


def _without_wording(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:]
        if _speaks(node):
            for inner in ast.walk(node):
                _drop_wording(inner)
    return tree


class _WithoutWorkers(ast.NodeTransformer):
    """Drops how worker processes are started; what they do, and with what, stays."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _starts_workers(node):
            node.func = ast.Name("workers", ast.Load())
            node.keywords = [one for one in node.keywords if one.arg != "mp_context"]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _starts_workers(node.value) else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return None if _starts_workers(node.value) else self.generic_visit(node)


def _starts_workers(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in WORKERS


def _speaks(node: ast.AST) -> bool:
    """Whether this makes only sentences for people: an error, or the notes of a verdict."""
    if isinstance(node, ast.Assign):
        return all(isinstance(one, ast.Name) and one.id in SPOKEN_NAMES for one in node.targets)
    return isinstance(node, ast.Raise) or (
        isinstance(node, ast.FunctionDef) and node.name == "notes"
    )


def _drop_wording(node: ast.AST) -> None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value = ""
    elif isinstance(node, ast.JoinedStr):
        node.values = []


class _ParsedModule(NamedTuple):
    statements: tuple[tuple[str, tuple[str, ...]], ...]  # digest of its code, and names in it
    definitions: dict[str, str]  # name -> digest of the statement that defines it
    imports: tuple[tuple[str, str, str], ...]  # name here, module, name there


def _meanings(module: _ParsedModule, modules: Mapping[str, _ParsedModule]) -> dict[str, str]:
    """What each name of a module stands for: a definition, wherever it is, or a place elsewhere."""
    found = {}
    for here, of, there in module.imports:
        counts = of in modules and not of.startswith(SHOWING + OTHERS)
        known = modules[of].definitions if counts else {}
        found[here] = known.get(there) or f"{of}.{there}"
    return found | module.definitions


def _statements(module: _ParsedModule, names: Mapping[str, str]) -> set[str]:
    """What each statement does: its code, and what its names stand for."""
    used = {one for _, own in module.statements for one in own}
    unused = {f"import {names[here]}" for here, _, _ in module.imports if here not in used}
    return unused | {
        "\n".join((code, *(names[one] for one in own))) for code, own in module.statements
    }


@cache
def parse_module(text: str) -> _ParsedModule:
    """What a module does, without layout, docstrings and wording."""
    tree, imports = ast.parse(text), list[tuple[str, str, str]]()
    top = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    inside = {id(node): _imported_names(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imports += ((one.asname or one.name, node.module or "", one.name) for one in node.names)
        for part in ("body", "orelse", "finalbody"):
            if isinstance(some := getattr(node, part, None), list):
                setattr(node, part, [one for one in some if not isinstance(one, ast.ImportFrom)])
    imports = [one for one in imports if one[2] not in WORKERS]
    body = _without_wording(_WithoutWorkers().visit(tree)).body
    body = [node for node in body if _defined_names(node) != {"__all__"}]
    bound = {name for node in body for name in _defined_names(node)}
    bound = bound.union(*(inside[id(node)] for node in top))
    statements, definitions = [], dict[str, str]()
    for node in body:
        names = _defined_names(node)
        own = _number_names(node, bound | inside.get(id(node), set()))
        digest = hashlib.sha256(ast.dump(node).encode()).hexdigest()
        statements.append((digest, own))
        definitions |= dict.fromkeys(names, digest)
    return _ParsedModule(tuple(statements), definitions, tuple(imports))


def _imported_names(node: ast.AST) -> set[str]:
    """The names that the statement, or one inside it, imports from modules."""
    lists = (one.names for one in ast.walk(node) if isinstance(one, ast.ImportFrom))
    return {one.asname or one.name for names in lists for one in names if one.name not in WORKERS}


def _number_names(node: ast.AST, bound: Collection[str]) -> tuple[str, ...]:
    """Replace names of the module by numbers, because another name does the same; return them."""
    numbers: dict[str, int] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in bound:
            one.id = f"#{numbers.setdefault(one.id, len(numbers))}"
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        node.name = ""
    return tuple(numbers)


def _defined_names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {one.id for one in targets if isinstance(one, ast.Name)}


@cache
def _changed_at(commit: str) -> set[str]:
    """The modules that do something else than at this commit."""
    listed = _git("diff", "--name-only", "--no-renames", commit, "--", "src", "research") or ""
    paths = [path for path in listed.split("\n") if path.endswith(".py")]
    old = zip(paths, _old_texts(commit, paths))
    new = ((path, ROOT / path) for path in paths)
    return changed_modules(
        {_module(path): text for path, text in old if text is not None},
        {_module(path): at.read_text(encoding="utf-8") for path, at in new if at.is_file()},
    )


def _module(path: str) -> str:
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _old_texts(commit: str, paths: list[str]) -> Iterator[str | None]:
    """The files as they were at a commit; None where there was none."""
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    done = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        input=asked.encode(),
    )
    rest = done.stdout
    for _ in paths:
        head, _, rest = rest.partition(b"\n")
        if head.endswith(b"missing"):
            yield None
            continue
        size = int(head.rpartition(b" ")[2])
        yield rest[:size].decode("utf-8")
        rest = rest[size + 1 :]


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
