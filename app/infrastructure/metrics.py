"""The meter: what ``/metrics`` shows, and the same through OpenTelemetry's interface.

OpenTelemetry's instruments do nothing until a process is started with an SDK (``opentelemetry-instrument``, or one set
up by hand): then it exports what Prometheus reads, under the same names with dots.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.metrics import get_meter
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app.core.model.instruments import INSTRUMENTS, Instrument
from app.core.text.patterns import compiled

PREFIX: Final = "throughline_"
CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
MAX_SERIES: Final = 200
"""The most series per instrument, so that no label, whatever it may contain one day, can fill the memory of a
collector.
"""
OTHER: Final = "other"
_WHOLE_BUCKET_BOUND: Final = compiled(r'([{,]le="\d{1,6})\.0"')
"""Matches whole bounds. They are written ``le="1"``, as queries name them; not every collector treats ``1.0`` as the
same.
"""

# Switches off the series with the time at which each other series began, which would double the size.
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class _Family:
    instrument: Instrument
    shown: Any
    """Prometheus' metric."""
    exported: Any
    """OpenTelemetry's instrument."""
    known: set[tuple[str, ...]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def series(self, labels: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
        """The series of Prometheus, and its labels. Raises ``KeyError`` if a label is missing."""
        names = self.instrument.labels
        key = tuple(labels[name] for name in names)
        with self.lock:
            if key not in self.known and len(self.known) >= MAX_SERIES:
                key = (OTHER,) * len(key)
            self.known.add(key)
        return self.shown.labels(*key) if key else self.shown, dict(zip(names, key, strict=True))


class ProcessMeter:
    """``ports.Meter`` of one process; safe in threads."""

    def __init__(self) -> None:
        meter = get_meter("throughline")
        self._registry = CollectorRegistry()
        self._families = {
            one.name: _Family(one, _prometheus_collector(self._registry, one), _opentelemetry_instrument(meter, one))
            for one in INSTRUMENTS
        }

    def count(self, instrument: Instrument, amount: float = 1, **labels: str) -> None:
        """Add to a counter. Raises ``ValueError`` for a negative amount."""
        family = self._families[instrument.name]
        series, attributes = family.series(labels)
        series.inc(amount)
        family.exported.add(amount, attributes)

    def observe(self, instrument: Instrument, value: float, **labels: str) -> None:
        """Add one value to a distribution."""
        family = self._families[instrument.name]
        series, attributes = family.series(labels)
        series.observe(value)
        family.exported.record(value, attributes)

    def set(self, instrument: Instrument, value: float, **labels: str) -> None:
        """Set a gauge to a value."""
        family = self._families[instrument.name]
        series, attributes = family.series(labels)
        series.set(value)
        family.exported.set(value, attributes)

    def render(self) -> str:
        """All metrics in the text format of Prometheus."""
        return _WHOLE_BUCKET_BOUND.sub(r'\1"', generate_latest(self._registry).decode())


def _prometheus_collector(registry: CollectorRegistry, instrument: Instrument) -> Counter | Gauge | Histogram:
    name = PREFIX + instrument.name
    if instrument.kind == "histogram":
        return Histogram(name, instrument.help, instrument.labels, registry=registry, buckets=instrument.buckets)
    kind = Counter if instrument.kind == "counter" else Gauge
    return kind(name, instrument.help, instrument.labels, registry=registry)


def _opentelemetry_instrument(meter: Any, instrument: Instrument) -> Any:
    name = "throughline." + instrument.name.removesuffix("_total").replace("_", ".")
    if instrument.kind == "counter":
        return meter.create_counter(name, unit=instrument.unit, description=instrument.help)
    if instrument.kind == "gauge":
        return meter.create_gauge(name, unit=instrument.unit, description=instrument.help)
    return meter.create_histogram(
        name,
        unit=instrument.unit,
        description=instrument.help,
        explicit_bucket_boundaries_advisory=instrument.buckets,
    )
