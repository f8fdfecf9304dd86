"""The meter: what ``/metrics`` shows, and the same through OpenTelemetry's interface.

OpenTelemetry's instruments do nothing until a process is started with an SDK (``opentelemetry-instrument``, or one set
up by hand): then it exports what Prometheus reads, under the same names with dots.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.metrics import get_meter

from app.core.model.instruments import INSTRUMENTS, Instrument

PREFIX: Final = "throughline_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES: Final = 200
"""Per instrument: whatever a label may hold one day, nothing can fill the memory of those who collect."""
OTHER: Final = "other"
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

Labels = tuple[str, ...]


@dataclass(slots=True)
class _Distribution:
    counts: list[int]
    total: float = 0.0

    def add(self, value: float, buckets: tuple[float, ...]) -> None:
        self.counts[bisect_left(buckets, value)] += 1
        self.total += value


@dataclass(slots=True)
class _Family:
    instrument: Instrument
    exported: Any
    """OpenTelemetry's instrument."""
    numbers: dict[Labels, float] = field(default_factory=dict)
    distributions: dict[Labels, _Distribution] = field(default_factory=dict)

    def key(self, labels: Mapping[str, str]) -> Labels:
        """The labels' values in order. Raises ``KeyError`` where one is missing."""
        key = tuple(labels[name] for name in self.instrument.labels)
        known = self.numbers.keys() | self.distributions.keys()
        return key if key in known or len(known) < MOST_SERIES else (OTHER,) * len(key)


class ProcessMeter:
    """``ports.Meter`` of one process; safe in threads."""

    def __init__(self) -> None:
        meter = get_meter("throughline")
        self._lock = threading.Lock()
        self._families = {one.name: _Family(one, _exported(meter, one)) for one in INSTRUMENTS}

    def count(self, instrument: Instrument, amount: float = 1, **labels: str) -> None:
        """Add to a counter. Raises ``ValueError`` for less than nothing."""
        if amount < 0:
            raise ValueError(f"{instrument.name} never goes down")
        family = self._families[instrument.name]
        with self._lock:
            key = family.key(labels)
            family.numbers[key] = family.numbers.get(key, 0) + amount
        family.exported.add(amount, _attributes(instrument, key))

    def observe(self, instrument: Instrument, value: float, **labels: str) -> None:
        """Add one value to a distribution."""
        family = self._families[instrument.name]
        with self._lock:
            key = family.key(labels)
            if key not in family.distributions:
                family.distributions[key] = _Distribution([0] * (len(instrument.buckets) + 1))
            family.distributions[key].add(value, instrument.buckets)
        family.exported.record(value, _attributes(instrument, key))

    def set(self, instrument: Instrument, value: float, **labels: str) -> None:
        """What a gauge shows from now on."""
        family = self._families[instrument.name]
        with self._lock:
            key = family.key(labels)
            family.numbers[key] = value
        family.exported.set(value, _attributes(instrument, key))

    def render(self) -> str:
        """Everything, in Prometheus' text format."""
        with self._lock:
            return "".join(f"{line}\n" for family in self._families.values() for line in _lines(family))


def _exported(meter: Any, instrument: Instrument) -> Any:
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


def _attributes(instrument: Instrument, key: Labels) -> dict[str, str]:
    return dict(zip(instrument.labels, key, strict=True))


def _lines(family: _Family) -> Iterator[str]:
    instrument = family.instrument
    name = PREFIX + instrument.name
    yield f"# HELP {name} {instrument.help}"
    yield f"# TYPE {name} {instrument.kind}"
    for key, number in sorted(family.numbers.items()):
        yield f"{name}{_labels(instrument.labels, key)} {_written(number)}"
    for key, one in sorted(family.distributions.items()):
        yield from _bucket_lines(name, instrument, key, one)


def _bucket_lines(name: str, instrument: Instrument, key: Labels, one: _Distribution) -> Iterator[str]:
    below = 0
    for bound, count in zip([*map(_written, instrument.buckets), "+Inf"], one.counts, strict=True):
        below += count
        yield f"{name}_bucket{_labels((*instrument.labels, 'le'), (*key, bound))} {below}"
    yield f"{name}_sum{_labels(instrument.labels, key)} {_written(one.total)}"
    yield f"{name}_count{_labels(instrument.labels, key)} {below}"


def _labels(names: tuple[str, ...], values: Labels) -> str:
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{','.join(pairs)}}}" if names else ""


def _written(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(float(number))
