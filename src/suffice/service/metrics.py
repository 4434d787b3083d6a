"""What Prometheus is told: requests, verdicts, how sure they were, how long it took, and whether the world has moved.

With several workers each writes its figures to files in PROMETHEUS_MULTIPROC_DIR, and whichever is asked adds them up. The
variable has to stand before `prometheus_client` is first imported; `running` sees to that.
"""

from __future__ import annotations

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from suffice.gate.drift import DRIFTED_PSI, Drift
from suffice.service.settings import METRICS_DIR_VARIABLE
from suffice.types import Verdict

__all__ = ["PROMETHEUS_TEXT", "Metrics"]

PROMETHEUS_TEXT = CONTENT_TYPE_PLAIN_0_0_4
LATENCY_BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    120,
)
PROBABILITY_BUCKETS = tuple(share / 20 for share in range(1, 21))


class Metrics:
    """The figures of one worker. No label holds anything that a visitor wrote."""

    def __init__(self) -> None:
        here = self.registry = CollectorRegistry()
        self.requests = Counter(
            "suffice_requests", "Requests by door and status.", ("route", "status"), registry=here
        )
        self.seconds = Histogram(
            "suffice_request_seconds",
            "From the last header to the end of the answer.",
            ("route",),
            buckets=LATENCY_BUCKETS,
            registry=here,
        )
        self.at_work = Gauge(
            "suffice_requests_in_work", "Now.", registry=here, multiprocess_mode="livesum"
        )
        self.actions = Counter(
            "suffice_checks", "Verdicts by gate and action.", ("gate", "action"), registry=here
        )
        self.p_complete = Histogram(
            "suffice_p_complete",
            "How sure the verdicts were.",
            ("gate",),
            buckets=PROBABILITY_BUCKETS,
            registry=here,
        )
        self.together = Histogram(
            "suffice_checks_together",
            "Checks judged in one go.",
            buckets=(1, 2, 4, 8, 16, 32),
            registry=here,
        )
        self.drift_moved = self._of_drift(
            "moved", "Share of features that have moved since the fit."
        )
        self.drift_psi = self._of_drift(
            "psi", "Stability index of the feature that has moved most."
        )
        self.drift_recalibrate = self._of_drift(
            "recalibrate", "1: the gate should be calibrated anew."
        )

    def _of_drift(self, name: str, says: str) -> Gauge:
        return Gauge(
            f"suffice_drift_{name}",
            says,
            ("gate",),
            registry=self.registry,
            multiprocess_mode="livemax",
        )

    def judged(self, gate: str, verdict: Verdict) -> None:
        self.actions.labels(gate, str(verdict.action)).inc()
        self.p_complete.labels(gate).observe(verdict.p_complete)

    def drifted(self, gate: str, drift: Drift) -> None:
        moved = [one.psi for one in drift.features]
        self.drift_moved.labels(gate).set(
            sum(psi > DRIFTED_PSI for psi in moved) / max(len(moved), 1)
        )
        self.drift_psi.labels(gate).set(max(moved, default=0.0))
        self.drift_recalibrate.labels(gate).set(float(drift.recalibrate))

    def shown(self) -> bytes:
        """All workers' figures in Prometheus' text form."""
        if METRICS_DIR_VARIABLE not in os.environ:
            return generate_latest(self.registry)
        every = CollectorRegistry()
        multiprocess.MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return generate_latest(every)
