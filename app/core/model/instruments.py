"""What the service shows to monitoring: one value per instrument. Labels are words of ours, never ids or text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

_SHORT_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_LONG_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0, 300.0)
_LEVEL_SHARES: Final = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
_SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One measure."""

    name: str
    """The name without the prefix ``throughline_``; names of counters end in ``_total``."""
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets."""
    unit: str = ""


def _counter(name: str, help_: str, *labels: str) -> Instrument:
    return Instrument(name=f"{name}_total", kind="counter", help=help_, labels=labels)


def _distribution(name: str, help_: str, buckets: tuple[float, ...], *labels: str, unit: str = "1") -> Instrument:
    return Instrument(name=name, kind="histogram", help=help_, labels=labels, buckets=buckets, unit=unit)


COMPACTIONS: Final = _counter("compactions", "Compactions that ended.", "trigger", "status", "ran_in")
COMPACTION_REASONS: Final = _counter("compaction_reasons", "Compactions that ended with a reason.", "reason")
TOKENS_SAVED: Final = _counter("tokens_saved", "Tokens that applied compactions took off the next request.", "trigger")
MESSAGES_COVERED: Final = _counter("messages_covered", "Messages that applied compactions covered.")
STATE_ENTRIES: Final = _counter("state_entries", "What applied compactions did to entries of states.", "change")
COMPACTION_TIME: Final = _distribution(
    "compaction_duration_seconds", "From start to end of a compaction.", _LONG_SECONDS, "ran_in", unit="s"
)
COMPACTION_RATIO: Final = _distribution("compaction_ratio", "Tokens after ÷ before, of applied compactions.", _SHARES)
LEVEL_RATIO: Final = _distribution(
    "level_ratio",
    "Tokens of a level ÷ tokens of the originals, of the segments that an applied compaction made.",
    _LEVEL_SHARES,
    "level",
)
FIDELITY: Final = _distribution(
    "compaction_fidelity", "Share of folded exact values that stand verbatim in what is served.", _SHARES
)
CONTINUITY: Final = _distribution(
    "compaction_continuity", "Of the probes answered before a compaction, the share answered after it.", _SHARES
)
CONTINUITY_PROBES: Final = _counter("continuity_probes", "Probes of applied compactions.", "kind", "answered")
MODEL_CALLS: Final = _counter("model_calls", "Model calls.", "purpose", "outcome")
MODEL_CALL_REASONS: Final = _counter("model_call_reasons", "Model calls refused or failed.", "purpose", "reason")
MODEL_CALL_TIME: Final = _distribution(
    "model_call_duration_seconds", "One model call, chat apart.", _LONG_SECONDS, "purpose", unit="s"
)
MODEL_TOKENS: Final = _counter("model_tokens", "Tokens that providers reported.", "purpose", "kind")
MODEL_COST: Final = _counter("model_cost_usd", "What model calls cost where the price is known.", "purpose")
CACHES: Final = _counter("provider_caches", "What was done with caches that providers keep.", "action")
CACHE_TOKENS: Final = _counter("provider_cache_tokens", "Tokens read from caches that providers were told to keep.")
CACHE_COST: Final = _counter(
    "provider_cache_usd", "What these caches cost, gave back and saved, where the prices are known.", "kind"
)
EXPANSIONS: Final = _counter("expansions", "Expansions.", "way")
EXPANSIONS_USED: Final = _counter("expansions_used", "Expansions that the reply drew on.", "way")
EXPANSION_PASSAGES: Final = _counter("expansion_passages", "Passages that expansions brought back.", "way")
EXPANSION_TOKENS: Final = _counter("expansion_tokens", "Tokens that expansions brought back.", "way")
RECALL_TIME: Final = _distribution("recall_duration_seconds", "One expansion.", _SHORT_SECONDS, "way", unit="s")
TURNS: Final = _counter("turns", "Turns that are over.", "status")
TURN_TIME: Final = _distribution(
    "turn_duration_seconds", "A turn, from its message to its reply.", _LONG_SECONDS, unit="s"
)
UTILIZATION: Final = _distribution("context_utilization", "Context ÷ budget of a conversation after a turn.", _SHARES)
COMPACTIONS_IN_FLIGHT: Final = Instrument(
    name="compactions_in_flight", kind="gauge", help="Compactions that are queued or running.", labels=("status",)
)
BACKGROUND_DEATHS: Final = _counter(
    "background_deaths", "Ends of work that goes on as long as its process; it was begun again each time.", "task"
)
DATABASE_UP: Final = Instrument(name="database_up", kind="gauge", help="1 where the last look at Postgres succeeded.")

INSTRUMENTS: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, Instrument))
"""All of the above."""
