"""`suffice reproduce frames` on a small made-up file: every table and figure, the same bytes twice,
and plain errors.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.evaluation.report import Table
from suffice_research.frames import prediction
from suffice_research.frames.study import study
from suffice_research.paper_models import PAPER_MODELS
from suffice_research.study import Study

pytestmark = pytest.mark.usefixtures("few_trees")

WIKI = "https://en.wikipedia.org/wiki/"
LABELS = (
    "Multiple constraints",
    "Numerical reasoning",
    "Post processing",
    "Tabular reasoning",
    "Temporal reasoning",
)
FIRST = (
    "Amber Birch Cedar Dahlia Elm Fern Ginger Hazel Iris Juniper Kale Laurel Maple Nettle "
    "Olive Poppy Quince Rose"
).split()
LAST = (
    "Abbey Bridge Castle Dam Estate Falls Garden Harbour Island Junction Keep Lake Mill "
    "Nunnery Orchard Palace"
).split()


def made_up(path: Path, questions: int) -> Path:
    """Questions about two to four places, of which some are only hinted at: those no title search
    can find.
    """
    draw = random.Random(7)
    places = [f"{first} {last}" for first in FIRST for last in LAST]
    lines = [
        "\t".join(("", "Prompt", "Answer", "wikipedia_link_1", "wiki_links", "reasoning_types"))
    ]
    for at in range(questions):
        needed = draw.sample(places, draw.choice((2, 2, 3, 4)))
        hidden = needed[-1] if at % 2 else None
        named = [place for place in needed if place != hidden]
        question = f"In {draw.randint(1800, 2020)}, which was older, {' or '.join(named)}"
        question += ", or the house where the poet died?" if hidden else "?"
        labels = " | ".join(draw.sample(LABELS, draw.choice((1, 2))))
        links = [WIKI + place.replace(" ", "_") for place in needed]
        lines.append("\t".join((str(at), question, named[0], links[0], ",".join(links), labels)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module", autouse=True)
def two_folds() -> Iterator[None]:
    """Fitting is nearly all of the time, and what is shown does not depend on the number of folds
    and trees.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction, "FOLDS", 2)
        patch.setitem(
            PAPER_MODELS,
            "frames-rf",
            lambda seed: RandomForestClassifier(5, max_depth=7, random_state=seed),
        )
        patch.setitem(
            PAPER_MODELS,
            "frames-gb",
            lambda seed: GradientBoostingClassifier(n_estimators=5, random_state=seed),
        )
        yield


@pytest.fixture(scope="module")
def small(
    tmp_path_factory: pytest.TempPathFactory, two_folds: None, few_trees: None
) -> tuple[Path, Study]:
    path = made_up(tmp_path_factory.mktemp("frames") / "test.tsv", 130)
    return path, replace(study(data=path.parent), commit=None)


def test_every_table_and_figure_of_the_paper_is_there(small: tuple[Path, Study]) -> None:
    _, made = small
    for number in range(1, 11):
        assert made.table(f"Table {number}.").rows
    titles = [figure.title for figure in made.figures]
    for number in range(1, 9):
        assert any(title.startswith(f"Figure {number}.") for title in titles)
    assert made.seed == 2024
    assert set(made.data) == {"test.tsv"}


def test_the_gate_stands_beside_the_papers_rows_and_told_beside_guessed(
    small: tuple[Path, Study],
) -> None:
    _, made = small
    settings = column(made.table("Table 8."), "setting")
    assert (
        settings.count("hybrid, our gate") == settings.count("hybrid, our gate, labels given") == 1
    )
    assert set(column(made.table("Told (oracle)"), "knows")) == {
        "labels told",
        "labels guessed",
        "labels and hops told",
        "labels and hops guessed",
    }
    assert len(made.table("Our gate (fast) less each").rows) == 9


def column(table: Table, name: str) -> list[object]:
    return [row[table.columns.index(name)] for row in table.rows]


def test_too_few_complete_questions_and_a_missing_file_are_said_plainly(tmp_path: Path) -> None:
    few = made_up(tmp_path / "test.tsv", 3)
    for data, message in (
        (few, "too few of one kind"),
        (tmp_path / "nowhere", "there is no test.tsv"),
    ):
        result = CliRunner().invoke(app, ["reproduce", "frames", "--data", str(data)])
        assert result.exit_code == 2
        assert message in result.output
        assert "hint:" in result.output
    assert CliRunner().invoke(app, ["reproduce", "frames"]).exit_code == 2
