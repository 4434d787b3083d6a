"""Prometheus metrics: requests, verdicts, probabilities, latency and drift.

With several workers, each writes its values to files in PROMETHEUS_MULTIPROC_DIR, and the one that
serves /metrics adds them up. The variable must be set before `prometheus_client` is imported;
`server` does that.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import prometheus_client as prometheus
from prometheus_client import multiprocess

from suffice.gate.drift import DRIFTED_PSI, MIN_QUESTIONS, Drift
from suffice.service.settings import METRICS_DIR_VARIABLE
from suffice.types import Verdict

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SHARES = tuple(step / 20 for step in range(1, 21))
BATCH_SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """The metrics of one worker. No label contains text from a client."""

    def __init__(self) -> None:
        _forget_dead_workers()
        self.registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self.registry)
        gauge = partial(prometheus.Gauge, registry=self.registry)
        histogram = partial(prometheus.Histogram, registry=self.registry)
        self.requests = counter(
            "suffice_requests", "Requests by route and status.", ("route", "status")
        )
        seconds_help = "From the last header to the end of the response."
        self.seconds = histogram(
            "suffice_request_seconds", seconds_help, ("route",), buckets=SECONDS
        )
        self.in_progress = gauge(
            "suffice_requests_in_progress", "Requests now.", multiprocess_mode="livesum"
        )
        self.actions = counter("suffice_checks", "Verdicts by gate and action.", ("gate", "action"))
        self.p_complete = histogram(
            "suffice_p_complete", "Probabilities of the verdicts.", ("gate",), buckets=SHARES
        )
        self.batch_size = histogram(
            "suffice_check_batch_size", "Checks that ran in one batch.", buckets=BATCH_SIZES
        )
        self.judged = counter(
            "suffice_judged", "Verdicts that a judge was asked about.", ("gate", "result")
        )
        drift_help = {
            "moved": "Share of features that have moved since the fit.",
            "psi": "Stability index of the feature that has moved most.",
            "recalibrate": "1: recalibrate the gate.",
        }
        self._drift = {
            name: gauge(f"suffice_drift_{name}", text, ("gate",), multiprocess_mode="livemax")
            for name, text in drift_help.items()
        }
        questions_help = f"Recent checks that drift is measured on, from {MIN_QUESTIONS} on."
        self.drift_questions = gauge(
            "suffice_drift_questions", questions_help, ("gate",), multiprocess_mode="livesum"
        )

    def count_verdict(self, gate: str, verdict: Verdict) -> None:
        self.actions.labels(gate, str(verdict.action)).inc()
        self.p_complete.labels(gate).observe(verdict.p_complete)
        if (judged := verdict.judged) is not None:
            changed = "changed" if judged.action_before is not verdict.action else "kept"
            result = "failed" if judged.p_judge is None else changed
            self.judged.labels(gate, result).inc()

    def set_drift(self, gate: str, drift: Drift) -> None:
        psi = [feature.psi for feature in drift.features]
        moved = sum(value > DRIFTED_PSI for value in psi) / max(len(psi), 1)
        values = {"moved": moved, "psi": max(psi, default=0.0), "recalibrate": drift.recalibrate}
        for name, value in values.items():
            self._drift[name].labels(gate).set(float(value))

    def render(self) -> bytes:
        """The metrics of all workers in Prometheus text format."""
        if METRICS_DIR_VARIABLE not in os.environ:
            return prometheus.generate_latest(self.registry)
        all_workers = prometheus.CollectorRegistry()
        multiprocess.MultiProcessCollector(all_workers)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(all_workers)


def _forget_dead_workers() -> None:
    """Drop the present values of workers that are gone; a new worker replaces each of them."""
    if METRICS_DIR_VARIABLE not in os.environ:
        return
    for file in Path(os.environ[METRICS_DIR_VARIABLE]).glob("gauge_live*.db"):
        pid = int(file.stem.rpartition("_")[2])
        try:
            os.kill(pid, 0)
        except OSError:
            multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
