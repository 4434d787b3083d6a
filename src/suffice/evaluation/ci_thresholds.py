"""Limits on a gate's figures, for a build that must stop when one is crossed: `risk@0.1>0.12`, `auroc<0.8`.

    limits = parse_limits(["risk@0.1>0.12", "auroc<0.8, coverage<0.3"])
    found = measure_limits(limits, run)            each with its figure, the interval, and whether chance could have decided
    junit(found, run)                           the same for a build server

A figure is one of the run's own (`risk`, `coverage`, `auroc`, `f1` ... of the gate's decisions), a metric at a number
(`f1@0.3`, `coverage_at_risk@0.1`, `ece@15`), or `risk@A` and `coverage@A`: what comes of the promise "at most A of the answered
are incomplete". For that the threshold is chosen on one half of the questions and counted on the other, both ways.
A figure that is not defined counts as crossed: a gate that answers nothing must not pass for a safe one.
"""

from __future__ import annotations

import math
import operator
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.gate_evaluation import grouped_folds
from suffice.evaluation.gate_runs import FIGURE_NAMES, GateRun, gate_figures
from suffice.evaluation.metrics import probability_metric
from suffice.evaluation.significance import Interval, interval, mean_interval
from suffice.evaluation.tables import Table
from suffice.gate.policy import choose_by_risk

__all__ = [
    "EXAMPLE",
    "Threshold",
    "ThresholdResult",
    "check_thresholds",
    "junit_xml",
    "parse_thresholds",
    "threshold_records",
    "thresholds_table",
]

Bools = npt.NDArray[np.bool_]
OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
THRESHOLD = re.compile(
    r"\s*(?P<figure>[a-z_0-9]+(?:@[0-9.eE+-]+)?)\s*(?P<operator>[<>]=?)\s*(?P<bound>[0-9.eE+-]+)\s*"
)
PROMISED = ("risk", "coverage")  # figures that @ turns into those of a promise
EXAMPLE = 'for example --fail-if "risk@0.1>0.12" --fail-if "auroc<0.8"'
NO_XML = re.compile(
    r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # what a name may hold and XML may not


@dataclass(frozen=True, slots=True)
class Threshold:
    """The build fails if the figure stands so to the bound."""

    figure: str
    operator: str
    bound: float

    def __str__(self) -> str:
        return f"{self.figure}{self.operator}{self.bound:g}"

    def crossed_by(self, value: float) -> bool:
        return bool(OPERATORS[self.operator](value, self.bound))


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    """A limit and the figure that was measured against it."""

    limit: Threshold
    measured: Interval

    @property
    def failed(self) -> bool:
        return self.measured.value is None or self.limit.crossed_by(self.measured.value)

    @property
    def sure(self) -> bool:
        """Do both ends of the interval say the same as the figure?"""
        ends = (self.measured.low, self.measured.high)
        return all(end is not None and self.limit.crossed_by(end) == self.failed for end in ends)

    @property
    def words(self) -> str:
        if self.measured.value is None:
            return "fails: not defined here"
        if self.sure:
            return (
                "fails: the whole interval is across"
                if self.failed
                else "holds: the whole interval is on this side"
            )
        return (
            "fails, but chance could do this: the interval reaches back"
            if self.failed
            else ("holds, but not surely: the interval reaches across")
        )


def parse_thresholds(texts: Iterable[str]) -> tuple[Threshold, ...]:
    """Limits from texts, several with commas. Nothing is evaluated: a name, a sign and a number, or an InputError."""
    return tuple(_parse_threshold(part) for text in texts for part in text.split(","))


def _parse_threshold(text: str) -> Threshold:
    found = THRESHOLD.fullmatch(text)
    bound = _number(found["bound"]) if found else math.nan
    if found is None or not math.isfinite(bound):
        raise InputError(
            f"--fail-if {text.strip()!r} is not a figure, one of < <= > >=, and a number",
            hint=EXAMPLE,
        )
    name, at, behind = found["figure"].partition("@")
    if at and name in PROMISED:
        if not 0 < _number(behind) < 1:
            raise InputError(
                f"--fail-if {text.strip()!r}: {name}@ is followed by a share between 0 and 1",
                hint=EXAMPLE,
            )
    elif at:
        probability_metric(found["figure"])
    elif name not in FIGURE_NAMES:
        raise InputError(
            f"--fail-if {text.strip()!r}: no figure is named {name!r}",
            hint=did_you_mean(name, FIGURE_NAMES),
        )
    return Threshold(found["figure"], found["operator"], bound)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_thresholds(
    limits: Sequence[Threshold], run: GateRun, *, delta: float = 0.1
) -> tuple[ThresholdResult, ...]:
    """Each limit with its figure on the run's questions. `delta`: how often the promise of `risk@` and `coverage@` may fail."""
    plain = gate_figures(run)
    return tuple(
        ThresholdResult(limit, plain.get(limit.figure) or _measure(limit.figure, run, delta))
        for limit in limits
    )


def _measure(figure: str, run: GateRun, delta: float) -> Interval:
    name, _, behind = figure.partition("@")
    if name not in PROMISED:
        return interval(run.predictions(), figure, seed=run.seed)
    complete = np.array(run.complete, dtype=bool)
    answered = _answered_under_promise(run, complete, float(behind), delta)
    if name == "coverage":
        return mean_interval(answered.astype(float), seed=run.seed)
    return mean_interval(np.where(answered, ~complete, np.nan), seed=run.seed)


def _answered_under_promise(run: GateRun, complete: Bools, alpha: float, delta: float) -> Bools:
    """Which questions are answered under the promise, by thresholds chosen on questions that are not among them."""
    p = np.array(run.p)
    answered = np.zeros(len(p), dtype=bool)
    for chosen_on, counted in grouped_folds(run.question_ids, complete, 2, run.seed):
        threshold = choose_by_risk(
            p[chosen_on], complete[chosen_on], alpha=alpha, delta=delta
        ).answer_at
        answered[counted] = False if threshold is None else p[counted] >= threshold
    return answered


# ------------------------------------------------------------------------------------------------------ telling


def thresholds_table(tested: Sequence[ThresholdResult]) -> Table:
    rows = tuple((str(one.limit), one.measured, one.words) for one in tested)
    return Table(
        "Limits",
        ("fail if", "measured", "outcome"),
        rows,
        "In brackets: 95 % bootstrap interval over questions.",
    )


def threshold_records(tested: Sequence[ThresholdResult]) -> list[dict[str, Any]]:
    """For a script."""
    return [
        {
            "limit": str(one.limit),
            "failed": one.failed,
            "sure": one.sure,
            "outcome": one.words,
            **asdict(one.measured),
        }
        for one in tested
    ]


def junit_xml(tested: Sequence[ThresholdResult], run: GateRun) -> str:
    """JUnit's XML: a test case a limit, whose name does not change from build to build."""
    failures = sum(one.failed for one in tested)
    suite = ElementTree.Element(
        "testsuite", name="suffice evaluate gate", tests=str(len(tested)), failures=str(failures)
    )
    where = NO_XML.sub("?", f"{run.dataset}.{run.retriever}.k{run.k}")
    for one in tested:
        case = ElementTree.SubElement(suite, "testcase", classname=where, name=f"not {one.limit}")
        value, low, high = (
            ("--" if part is None else f"{part:.4f}") for part in _bounds(one.measured)
        )
        told = f"{one.limit.figure} = {value} [{low}, {high}], {len(run)} questions. {one.words}"
        if one.failed:
            ElementTree.SubElement(case, "failure", message=told, type="limit")
        ElementTree.SubElement(case, "system-out").text = told
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _bounds(measured: Interval) -> tuple[float | None, float | None, float | None]:
    return measured.value, measured.low, measured.high
