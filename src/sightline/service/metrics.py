"""Metrics of a service, for Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics:
    """Counters, gauges and histograms of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kept: Any = {"registry": self.registry}
        self.requests = Counter(
            "sightline_requests", "Requests answered.", ["route", "method", "status"], **kept
        )
        self.latency = Histogram(
            "sightline_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, **kept
        )
        self.commits = Histogram(
            "sightline_transaction_seconds", "Time of a transaction.", buckets=_SECONDS, **kept
        )
        self.batches = Histogram(
            "sightline_transaction_requests",
            "Requests in one transaction.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
            **kept,
        )
        self.events = Counter("sightline_events", "Events written.", **kept)
        self.failures = Counter("sightline_transactions_failed", "Transactions failed.", **kept)
        self.loaded = Gauge("sightline_experiments_loaded", "Experiments in memory.", **kept)
        self.checks = Gauge(
            "sightline_check_failed",
            "Failed checks of experiments in memory; those that passed have no series.",
            ["experiment", "check"],
            **kept,
        )
