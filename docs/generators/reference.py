"""The pages that are generated from the code and from stored runs, so that they cannot drift: `pages()` is all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from benchmarks import overview

from docs.generators import (
    bridge,
    bridge_cards,
    expansion,
    formats,
    gate,
    guarantees,
    http_api,
    loop,
    python_api,
    readme,
    retrieval,
    settings,
    studies,
)
from docs.generators.markdown import NOTE, table
from docs.generators.paths import REFERENCE, RESULTS
from suffice import errors
from suffice.cli.app import EXAMPLES, app
from suffice.evaluation.metrics import ANSWER_METRICS, PROBABILITY, RANKING
from suffice.gate.features import FEATURES
from suffice.gate.similarity import RELEVANCE, RELEVANCE_HIT, SIMILARITY, SIMILARITY_HIT
from suffice.gate.stuffing_filter import SUPPORT_COLUMNS
from suffice.integrations import set_scorer  # noqa: F401 - registers its retriever, installed as a plug-in or not
from suffice.registry import RETRIEVERS
from suffice.retrieval import builtin  # noqa: F401 - importing it registers our retrievers
from suffice_research.paper_features import FRAMES_WITH_HOPS, MAGAF


def commands() -> str:
    """Every command with its options, as `--help` shows them."""
    lines = [
        "# Commands\n",
        "Exit codes: 0 done, 2 the caller's mistake, 1 ours, 3 what `--fail-if` asked for has come true. Errors are two lines, "
        "`error:` and `hint:`.\n",
    ]

    def describe(command: Any, name: str) -> None:
        lines.append(f"## `{name}`\n\n{(command.help or '').strip()}\n")
        rows = []
        for parameter in command.params:
            if parameter.param_type_name == "option":
                default = (
                    ""
                    if parameter.default in (None, False) or callable(parameter.default)
                    else f"`{parameter.default}`"
                )
                rows.append((f"`{', '.join(parameter.opts)}`", parameter.help or "", default))
            else:
                rows.append((f"`{parameter.name}`", getattr(parameter, "help", "") or "", ""))
        if rows:
            lines.append(table(("option", "meaning", "default"), rows))
        lines.append(f"    {EXAMPLES[name]}\n")
        for child, one in sorted(getattr(command, "commands", {}).items()):
            describe(one, f"{name} {child}")

    describe(typer.main.get_command(app), "suffice")
    return "\n".join(lines)


def metrics() -> str:
    """Every metric by name and meaning."""
    lines = [
        "# Metrics\n",
        "A value that is not defined (one class only, no questions) is `null` in JSON and `--` in print.\n",
    ]
    for title, family in (("Rankings", RANKING), ("Probabilities", PROBABILITY)):
        lines += [
            f"## {title}\n",
            table(("metric", "meaning"), [(f"`{one.name}`", one.meaning) for one in family]),
        ]
    meanings = [
        (f"`{name}`", (function.__doc__ or "").splitlines()[0])
        for name, function in ANSWER_METRICS.items()
    ]
    lines += ["## Answers\n", table(("metric", "meaning"), meanings)]
    return "\n".join(lines)


LEVELS = {
    "hit": "Of each hit: which of them are evidence?",
    "absent": "Of each name that no hit is about: is it missing evidence?",
    "question": "Of the question alone: what does it ask for, and how many documents does it need?",
    "whole": "Of the whole set of hits.",
    "beside": "Of each hit, where other retrievers' runs are given.",
    "gate": "What the gate looks at: the answers of those models, and the figures of the whole set.",
}


def features() -> str:
    """Every feature of the gate by level and family, then the two papers' selections."""
    lines = [
        "# Features\n",
        "Every one is computed from the question and its hits alone, and none depends on the scale of scores. A family is what "
        "`reasons` speak of; a level is the model that looks at the feature.\n",
    ]
    known = dict.fromkeys([*LEVELS, *(one.level for one in FEATURES)])
    for level in known:
        rows = [
            (f"`{one.name}`", one.family, one.meaning) for one in FEATURES if one.level == level
        ]
        if rows:
            lines += [
                f"## Level {level}\n",
                f"{LEVELS.get(level, '')}\n",
                table(("feature", "family", "meaning"), rows),
            ]
    more = [(name, "hit", meaning) for name, meaning in (SIMILARITY_HIT | RELEVANCE_HIT).items()]
    more += [(one.name, "gate", one.meaning) for one in (*SIMILARITY, *RELEVANCE)]
    rows = [(f"`{name}`", level, meaning) for name, level, meaning in more]
    lines += [
        "## Of the quality preset alone\n",
        "What an encoder sees, and a cross-encoder where one is given.\n",
    ]
    lines.append(table(("feature", "level", "meaning"), rows))
    lines += [
        "## Of a hardened gate alone\n",
        "What its screen sees of a hit beside the above: see `suffice.gate.stuffing_filter`.\n",
    ]
    lines.append(
        table(
            ("feature", "level", "meaning"),
            [(f"`{name}`", "hit", says) for name, says in SUPPORT_COLUMNS.items()],
        )
    )
    for title, chosen in (("MAGAF", MAGAF), ("FRAMES", FRAMES_WITH_HOPS)):
        rows = [(f"`{one.name}`", one.family, one.meaning) for one in chosen]
        lines += [f"## {title}'s {len(chosen)}\n", table(("feature", "family", "meaning"), rows)]
    return "\n".join(lines)


def retrievers() -> str:
    """Every named retriever with the first line of its docstring."""
    rows = [
        (f"`{name}`", (RETRIEVERS.get(name).__doc__ or "").splitlines()[0])
        for name in RETRIEVERS.names()
    ]
    return "# Retrievers\n\n" + table(("name", "what it does"), rows)


def error_tree() -> str:
    """The tree of errors, as the module draws it, with codes."""
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    rows = [
        (
            f"`{one.__name__}`",
            f"`{one.code}`",
            str(one.exit_code),
            (one.__doc__ or "").splitlines()[0],
        )
        for one in kinds
    ]
    drawn = "\n".join(line for line in (errors.__doc__ or "").splitlines() if "Error" in line)
    return f"# Errors\n\n{drawn}\n\n" + table(("error", "code", "exit code", "meaning"), rows)


PAGES = {
    "commands.md": commands,
    "features.md": features,
    "metrics.md": metrics,
    "retrievers.md": retrievers,
    "errors.md": error_tree,
    "python.md": python_api.page,
    "formats.md": formats.page,
    "settings.md": settings.page,
}


def pages() -> dict[Path, str]:
    reference = {REFERENCE / name: NOTE + page() for name, page in PAGES.items()}
    if http := http_api.page():
        reference[REFERENCE / "http.md"] = NOTE + http
    measured = {RESULTS / "performance.md": overview.page(RESULTS)}
    for one in (retrieval, gate, studies, loop, expansion, bridge, bridge_cards, guarantees):
        measured |= one.pages()
    return (
        reference
        | {path: NOTE + text for path, text in measured.items()}
        | {readme.README: readme.page()}
    )
