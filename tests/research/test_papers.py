"""The list of what became of the papers, held to the papers, to the code, and to the stored runs."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from docs.generators import freshness, measure
from docs.generators.freshness import (
    MARK,
    STORED_RUNS,
    changed_modules,
    changed_since,
    freshness_line,
    freshness_lines,
    needed_modules,
    parse_module,
    with_freshness,
    without_freshness,
)
from docs.generators.papers import STATES
from docs.generators.paths import DATA, DOCS, RESULTS, ROOT, RUNS
from docs.generators.results import load_studies
from tests.commands import suffice
from tests.opened_models import only_models_of

from suffice.errors import InputError
from suffice.evaluation.study import IN_ALL, PROCESSOR, Study, study_items
from suffice.gate.question import WordTable
from suffice_research import STUDY_NAMES
from suffice_research.papers import load_papers
from suffice_research.study_times import time_lines

TEXTS = DATA.parent / "papers"
# The papers' own numbers: (tables, figures). Of par-rag, those of its first version that we have.
NUMBERED = {
    "magaf": (range(1, 12), range(1, 8)),
    "frames": (range(1, 11), range(1, 9)),
    "multi-meta-rag": (range(2, 5), ()),
    "par-rag": ((2, 4), (2,)),
    "grade": (range(1, 5), range(1, 5)),
}
ROOTS = {"suffice": ROOT / "src", "suffice_research": ROOT / "research", "docs": ROOT}
ITEMS = [(paper, one) for paper in load_papers().values() for one in paper.items]


def test_every_numbered_table_and_figure_is_listed_once() -> None:
    assert set(load_papers()) == set(STUDY_NAMES)
    for name, (tables, figures) in NUMBERED.items():
        items = load_papers()[name].items
        listed = [one.item for one in items if one.kind != "component"]
        wanted = {f"Table {number}" for number in tables} | {f"Figure {one}" for one in figures}
        assert set(listed) == wanted, name
        assert len({one.item for one in items}) == len(items), name


@pytest.mark.parametrize("name", NUMBERED)
def test_the_papers_text_has_no_other_table_or_figure(name: str) -> None:
    text = TEXTS / load_papers()[name].text
    if not text.is_file():
        pytest.skip(f"the text of the paper is not here: {text.name}")
    named = set(re.findall(r"\b(?:Table|Figure) \d+\b", text.read_text(encoding="utf-8")))
    listed = {one.item for one in load_papers()[name].items if one.kind != "component"}
    assert named <= listed
    if name != "par-rag":  # the text at hand is a summary without numbers
        assert named == listed


def test_at_most_a_twentieth_is_not_done_and_all_that_differs_has_its_reason() -> None:
    assert {one.state for _, one in ITEMS} <= set(STATES)
    assert {one.kind for _, one in ITEMS} == {"table", "figure", "component"}
    assert len(ITEMS) >= 130
    assert sum(one.state == "not done" for _, one in ITEMS) <= 0.05 * len(ITEMS)
    for paper, one in ITEMS:
        assert bool(one.why) == (one.state != "done"), f"{paper.name}: {one.item}"
        assert not one.why.endswith("."), f"{paper.name}: {one.item}"


def test_code_pages_and_commands_of_the_list_exist() -> None:
    reference = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    sections = {part.partition("`")[0]: part for part in reference.split("\n## `suffice ")[1:]}
    for paper, one in ITEMS:
        where = f"{paper.name}: {one.item}"
        assert (DOCS / one.page).is_file(), where
        module, _, name = one.code.partition(":")
        stem = ROOTS[module.partition(".")[0]].joinpath(*module.split("."))
        files = [path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()]
        assert files, f"{where}: no module {module}"
        if name:
            defined = rf"^(?:def|class) {name}\b|^{name}\b.*="
            assert re.search(defined, files[0].read_text(encoding="utf-8"), re.MULTILINE), where
        program, *words = one.command.split()
        assert program == "suffice", where
        options = [word for word in words if word.startswith("--")]
        named = next((at for at, word in enumerate(words) if word.startswith("--")), len(words))
        section = next(
            sections[key] for key in (" ".join(words[:named]), words[0]) if key in sections
        )
        assert all(option in section for option in options), where


def test_what_is_said_to_be_shown_is_in_the_stored_study() -> None:
    studies = load_studies()
    for paper, one in ITEMS:
        on_its_page = one.page == paper.page and one.command == paper.command
        if not on_its_page or one.state == "not done" or not (one.shown or one.kind != "component"):
            continue
        study = studies[paper.name]
        titles = [shown.title for section in study.sections for shown in section.shown]
        wanted = one.shown or one.item
        found = any(re.match(rf"{re.escape(wanted)}(?!\d)", title) for title in titles)
        assert found, f"{paper.name}: no table or figure {wanted!r} for {one.item}"
    for paper in load_papers().values():
        for item, figure in paper.figures.items():
            assert figure.words(studies[paper.name]), f"{paper.name}: no cell for {item}"


def test_the_command_lists_the_items_and_runs_nothing() -> None:
    rows = json.loads(suffice("reproduce", "par-rag", "--items", "--json").stdout)
    assert {row["state"] for row in rows} == set(STATES)
    assert next(row for row in rows if row["item"] == "RAPTOR")["why"]
    with pytest.raises(InputError, match="does not list"):
        study_items(lambda: None, "plain")  # type: ignore[arg-type,return-value]


def test_a_study_is_as_old_as_the_code_that_it_runs() -> None:
    module = "suffice.retrieval.dates"
    assert "suffice.text" in needed_modules(module)
    assert not needed_modules("suffice.evaluation.tables")  # it shows, and makes no figure
    assert changed_since("0" * 40, module) is None
    assert "unknown age" in freshness_line(["loop"], "0" * 40, module)
    assert "unknown age" in freshness_line(["loop"], "", module)


def test_wording_does_not_make_a_run_older() -> None:
    before = """
def load(path):
    hint = "name a file"
    if not path:
        raise InputError(f"{path} is missing", hint=hint)
    return path
"""
    worded = before.replace("name a file", "try again").replace("is missing", "is not there")
    assert parse_module(worded) == parse_module(before)
    assert parse_module(before.replace("return path", 'return path or "x"')) != parse_module(before)
    assert parse_module(before.replace("not path", "path")) != parse_module(before)
    notes = 'def notes(count):\n    return f"{count} were cut" if count else ""\n'
    assert parse_module(notes.replace("cut", "left out")) == parse_module(notes)
    assert parse_module(notes.replace("if count", "if count > 1")) != parse_module(notes)


def test_where_work_is_done_does_not_make_a_run_older() -> None:
    before = """
from multiprocessing import get_context
def read(lists, folder):
    spawn = get_context("spawn")
    with ProcessPoolExecutor(mp_context=spawn, initializer=open, initargs=(folder,)) as pool:
        return list(pool.map(one, lists))
"""
    after = """
from suffice.evaluation.worker_pool import worker_pool
def read(lists, folder):
    with worker_pool(initializer=open, initargs=(folder,)) as pool:
        return list(pool.map(one, lists))
"""
    assert parse_module(after) == parse_module(before)
    assert parse_module(after.replace("(folder,)", "(lists,)")) != parse_module(before)
    assert parse_module(after.replace("map(one", "map(other")) != parse_module(before)


def test_a_statement_that_moved_does_not_make_a_run_older() -> None:
    before = {
        "a": "K = 4\ndef top(x):\n    return x[:K]\ndef show(x):\n    print(top(x))\n",
        "b": "from a import top\ndef use(x):\n    return top(x)\n",
    }
    moved = {
        "a": "from c import top\ndef show(x):\n    print(top(x))\n",
        "b": "def use(x):\n    from c import top\n    return top(x)\n",
        "c": "K = 4\ndef top(x):\n    return x[:K]\n",
    }
    assert changed_modules(before, moved) == set()
    swapped = {"a": "K = 4\nN = 5\n"}, {"a": "K = 5\nN = 4\n"}
    assert changed_modules(*swapped) == {"a"}  # another module may use them, as before
    renamed = {name: text.replace("top", "first") for name, text in moved.items()}
    assert changed_modules(before, renamed) == set()
    assert "c" in changed_modules(before, {**moved, "c": moved["c"].replace("4", "5")})
    other = {
        **moved,
        "d": "def top(x):\n    return x\n",
        "b": moved["b"].replace("from c", "from d"),
    }
    assert {"b", "d"} <= changed_modules(before, other)  # the same name for something else
    assert changed_modules(before, {**moved, "c": "K = 4\n"}) >= {"a", "b"}
    assert "b" in changed_modules(before, {**moved, "b": "import_all()\n" + moved["b"]})


def test_a_reviewed_change_ages_no_run_until_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "suffice.retrieval.corpus"
    now = freshness._digest((ROOT / "src/suffice/retrieval/corpus.py").read_text("utf-8"))
    monkeypatch.setattr(freshness, "_old_texts", lambda *_: iter(["x = 1\n"]))
    then = freshness._digest("x = 1\n")
    other = "0" * 12
    for before, digest, reviewed in (
        ((other, then), now, [module]),
        ((then,), other, []),
        ((other,), now, []),
    ):
        monkeypatch.setattr(freshness, "REVIEWED", {module: (before, digest, "why")})
        assert freshness.reviewed_since("0" * 40, module) == reviewed


def test_no_study_reads_a_folder_of_own_files() -> None:
    for folder in ("research/suffice_research", "src/suffice/evaluation", "docs/generators"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"load\(\s*\"folder\"", path.read_text(encoding="utf-8")), path
    assert "suffice.datasets.folder" not in needed_modules("suffice.datasets")


def test_no_run_is_older_because_the_data_of_the_reader_is_packed_differently() -> None:
    packing = {f"suffice_research.training.{name}" for name in ("reader_data", "reader_lists")}
    assert not [one.name for one in STORED_RUNS if packing & needed_modules(one.module)]


def test_a_run_is_as_old_as_the_models_that_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = "src/suffice/models/reader/manifest.json\nsrc/suffice/models/reader/pair.onnx\n"
    monkeypatch.setattr(freshness, "_git", lambda *_: changed)
    monkeypatch.setattr(freshness, "REVIEWED", {})  # new modules are not in this commit
    ages = {
        one.name: freshness_line([one.name], "0" * 40, one.module, one.models)
        for one in STORED_RUNS
    }
    assert ages["study-magaf"].endswith("Of what it runs, nothing has changed since.")
    assert ages["answers"].endswith("**older than the code**: `models/reader` changed since.")
    now = (ROOT / "src" / "suffice" / "models" / "reader" / "manifest.json").read_text("utf-8")
    weights = json.loads(now)["files"]["answers.json"]
    before = now.replace(weights, "0" * len(weights))
    monkeypatch.setattr(freshness, "_old_texts", lambda _, paths: iter([before] * len(paths)))
    runs = [one for one in STORED_RUNS if freshness.ANSWERS in one.models]
    for one in STORED_RUNS:
        age = freshness_line([one.name], "0" * 40, one.module, one.models)
        assert age.endswith("`models/answers` changed since.") == (one in runs), one.name


def test_the_models_of_a_run_are_there_and_no_others_are_opened() -> None:
    folders = (
        ROOT / "src" / "suffice" / "models",
        ROOT / "research" / "suffice_research" / "models",
    )
    shipped = {one.parent.name for folder in folders for one in folder.glob("*/manifest.json")}
    assert {name for one in STORED_RUNS for name in one.models} <= {*shipped, freshness.ANSWERS}
    with pytest.raises(AssertionError, match="bridge-fast loads"), only_models_of("bridge-fast"):
        WordTable.load()


def test_a_run_without_settings_says_its_age_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "RUNS", tmp_path)
    record = {"level": 0.7, "sources": {}, "commit": "0" * 40}
    (tmp_path / "answers.json").write_text(json.dumps(record), encoding="utf-8")
    (line,) = freshness_lines(RESULTS / "answers.md")
    assert line.startswith("- *Run answers*: at commit 00000000")


def test_every_stored_run_has_a_module_and_a_page_that_says_its_age() -> None:
    listed = {one.name for one in STORED_RUNS}
    beside = {"bridge-quality-held"}  # counted anew: bridge-quality
    assert {path.stem for path in RUNS.glob("*.json")} - beside == listed
    assert all(needed_modules(one.module) for one in STORED_RUNS)
    bare = {
        RESULTS / f"{page}.md": "<!-- made -->\n\n# Title\n\nSeed 42.\n\n- Holds\n"
        for page in {one.page for one in STORED_RUNS}
    }
    for path, text in with_freshness(bare).items():
        ages = [line for line in text.splitlines() if line.startswith(MARK)]
        for name in (one.name for one in STORED_RUNS if one.page == path.stem):
            assert any(name in re.findall(r"[\w-]+", line.partition("*:")[0]) for line in ages), (
                name
            )
        assert without_freshness(text) == bare[path]
    untouched = {RESULTS.parent / "models" / "gate-fast.md": "# Card\n\nText.\n"}
    assert with_freshness(untouched) == untouched


def test_every_stored_run_is_measured_again_by_make_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands stand still here; that they run is held by the tests of their modules."""
    stored: set[str] = set()

    def run_nothing(command: str, data: Path, *more: str, cwd: Path = ROOT) -> str:
        for option, value in pairwise(more):
            if option == "--study":
                Path(value).write_text("{}", encoding="utf-8")
        return '{"seconds": 1}'

    monkeypatch.setattr(measure, "run_command", run_nothing)
    monkeypatch.setattr(measure, "store_study", lambda study, path: stored.add(path.stem))
    monkeypatch.setattr(measure, "write_atomically", lambda path, text: stored.add(path.stem))
    monkeypatch.setattr(measure, "count_bridge_gold", lambda data: stored.add("bridge-quality"))
    for part, measured in measure.PARTS.items():
        (tmp_path / part).mkdir()
        measured(tmp_path, tmp_path / part)
    days = {"study-par-rag-model"}  # of a GPU; the how-to says so
    assert stored == {one.name for one in STORED_RUNS} - days


def test_the_times_of_studies_are_added_up_and_a_missing_one_is_said(tmp_path: Path) -> None:
    done = tmp_path / "magaf" / "study.json"
    spent = {"search": 5.0, IN_ALL: 90.0, PROCESSOR: 60.0}
    Study("magaf", "MAGAF", 1, {}, {}, (), timings=spent).save(done)
    assert list(time_lines([done, tmp_path / "frames" / "study.json"])) == [
        "magaf: 1.5 minutes, 1.0 minutes of processor time",
        "frames: not done",
        "without those not done: 1.5 minutes, 1.0 minutes of processor time",
    ]


def test_the_pages_about_made_questions_agree() -> None:
    """The page of questions that people read leaves today's counts to the study's."""
    page = (DOCS / "results" / "grade-sample.md").read_text(encoding="utf-8")
    assert "(grade.md)" in page
    assert not re.search(r"\d[\d,]* of [2-5] hops", page)
