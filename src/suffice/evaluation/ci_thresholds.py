"""Thresholds on a gate's figures, to fail a build when one is crossed.

    thresholds = parse_thresholds(["risk@0.1>0.12", "auroc<0.8, coverage<0.3"])
    results = check_thresholds(thresholds, run)     each with its figure, interval and outcome
    junit_xml(results, run)                         the same for a build server

A figure is one of the run's own (`risk`, `coverage`, `auroc`, `f1` ... of the gate's decisions), a
metric with a parameter (`f1@0.3`, `ece@15`), or `risk@A` and `coverage@A`: the figures of the
promise "at most A of the answered are incomplete", with the threshold chosen on one half of the
questions and measured on the other, both ways. An undefined figure counts as crossed: a gate that
answers nothing must not pass as safe.
"""

from __future__ import annotations

import math
import operator
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from suffice.errors import InputError, did_you_mean
from suffice.evaluation.gate_evaluation import grouped_folds
from suffice.evaluation.gate_runs import FIGURE_NAMES, GateRun, gate_figures
from suffice.evaluation.metrics import probability_metric
from suffice.evaluation.report import Table
from suffice.evaluation.significance import Interval, interval, mean_interval
from suffice.gate.policy import choose_by_risk

__all__ = ["Threshold", "ThresholdResult", "check_thresholds", "junit_xml", "parse_thresholds"]

OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
THRESHOLD = re.compile(
    r"\s*(?P<figure>[a-z_0-9]+(?:@[0-9.eE+-]+)?)"
    r"\s*(?P<operator>[<>]=?)\s*(?P<bound>[0-9.eE+-]+)\s*"
)
PROMISED = ("risk", "coverage")  # figures for which @ means a promise
EXAMPLE = 'for example --fail-if "risk@0.1>0.12" --fail-if "auroc<0.8"'
# Characters that a name may contain but XML may not.
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Threshold:
    """The build fails if the figure compares like this with the bound."""

    figure: str
    operator: str
    bound: float

    def __str__(self) -> str:
        return f"{self.figure}{self.operator}{self.bound:g}"

    def crossed_by(self, value: float) -> bool:
        return bool(OPERATORS[self.operator](value, self.bound))


@dataclass(frozen=True, slots=True)
class ThresholdResult:
    """A threshold and the measured figure."""

    threshold: Threshold
    measured: Interval

    @property
    def failed(self) -> bool:
        return self.measured.value is None or self.threshold.crossed_by(self.measured.value)

    @property
    def sure(self) -> bool:
        """Whether both ends of the interval agree with the figure."""
        ends = (self.measured.low, self.measured.high)
        return all(
            end is not None and self.threshold.crossed_by(end) == self.failed for end in ends
        )

    @property
    def words(self) -> str:
        if self.measured.value is None:
            return "fails: not defined here"
        return {
            (True, True): "fails: the whole interval is across",
            (False, True): "holds: the whole interval is on this side",
            (True, False): "fails, but chance could do this: the interval reaches back",
            (False, False): "holds, but not surely: the interval reaches across",
        }[self.failed, self.sure]


def parse_thresholds(texts: Iterable[str]) -> tuple[Threshold, ...]:
    """Parse comma-separated thresholds: a name, a sign and a number; InputError if invalid."""
    return tuple(_parse_threshold(part.strip()) for text in texts for part in text.split(","))


def _parse_threshold(text: str) -> Threshold:
    found = THRESHOLD.fullmatch(text)
    bound = _number(found["bound"]) if found else math.nan
    if found is None or not math.isfinite(bound):
        raise InputError(
            f"--fail-if {text!r} is not a figure, one of < <= > >=, and a number", hint=EXAMPLE
        )
    name, at, suffix = found["figure"].partition("@")
    if at and name in PROMISED:
        if not 0 < _number(suffix) < 1:
            raise InputError(
                f"--fail-if {text!r}: {name}@ is followed by a share between 0 and 1", hint=EXAMPLE
            )
    elif at:
        probability_metric(found["figure"])
    elif name not in FIGURE_NAMES:
        raise InputError(
            f"--fail-if {text!r}: no figure is named {name!r}",
            hint=did_you_mean(name, FIGURE_NAMES),
        )
    return Threshold(found["figure"], found["operator"], bound)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_thresholds(
    thresholds: Sequence[Threshold], run: GateRun, *, delta: float = 0.1
) -> tuple[ThresholdResult, ...]:
    """Each threshold with its figure. `delta`: how often the promise of `risk@` may fail."""
    plain = gate_figures(run)
    return tuple(
        ThresholdResult(one, plain.get(one.figure) or _measure(one.figure, run, delta))
        for one in thresholds
    )


def _measure(figure: str, run: GateRun, delta: float) -> Interval:
    name, _, suffix = figure.partition("@")
    if name not in PROMISED:
        return interval(run.predictions(), figure, seed=run.seed)
    p, complete = np.array(run.p), np.array(run.complete, dtype=bool)
    answered = np.zeros(len(p), dtype=bool)
    for chosen_on, counted in grouped_folds(run.question_ids, complete, 2, run.seed):
        policy = choose_by_risk(p[chosen_on], complete[chosen_on], alpha=float(suffix), delta=delta)
        if policy.answer_at is not None:
            answered[counted] = p[counted] >= policy.answer_at
    if name == "coverage":
        return mean_interval(answered.astype(float), seed=run.seed)
    return mean_interval(np.where(answered, ~complete, np.nan), seed=run.seed)


# ------------------------------------------------------------------------------------ showing


def thresholds_table(results: Sequence[ThresholdResult]) -> Table:
    rows = tuple((str(one.threshold), one.measured, one.words) for one in results)
    note = "In brackets: 95 % bootstrap interval over questions."
    return Table("Limits", ("fail if", "measured", "outcome"), rows, note)


def threshold_records(results: Sequence[ThresholdResult]) -> list[dict[str, Any]]:
    """The results for scripts."""
    return [
        {
            "limit": str(one.threshold),
            "failed": one.failed,
            "sure": one.sure,
            "outcome": one.words,
            **asdict(one.measured),
        }
        for one in results
    ]


def junit_xml(results: Sequence[ThresholdResult], run: GateRun) -> str:
    """The results as JUnit XML: one test case per threshold, with a stable name."""
    failures = sum(one.failed for one in results)
    counts: Any = {"tests": str(len(results)), "failures": str(failures)}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="suffice evaluate gate", **counts)
    where = NO_XML.sub("?", f"{run.dataset}.{run.retriever}.k{run.k}")
    for one in results:
        name = f"not {one.threshold}"
        case = ElementTree.SubElement(suite, "testcase", classname=where, name=name)
        bounds = astuple(one.measured)
        value, low, high = ("--" if part is None else f"{part:.4f}" for part in bounds)
        figure = f"{one.threshold.figure} = {value} [{low}, {high}]"
        text = f"{figure}, {len(run)} questions. {one.words}"
        if one.failed:
            ElementTree.SubElement(case, "failure", message=text, type="limit")
        ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"
