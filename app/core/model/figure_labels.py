"""Labels for figures and reasons, in the user's language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.core.model.policies.adaptive import adaptable_trigger
from app.core.model.policies.budgets import exact_share
from app.core.model.policies.policy import CompactionPolicy, Threshold
from app.core.text.localization.catalogue import Catalogue
from app.core.text.patterns import compiled

_LATENCY: Final = "latency."
_LEVELS: Final = compiled(r"^(?:last|active)\.(?=levels\.)")


def trigger_label(catalogue: Catalogue, trigger: str, policy: CompactionPolicy | None = None) -> str:
    """Why a compaction ran. If a policy with this trigger is given, its present threshold is named as well."""
    name = catalogue.word("trigger", trigger)
    found = next((one for one in policy.triggers if one.name == trigger), None) if policy else None
    if found is None or (policy is not None and policy.adaptive == "on" and found is adaptable_trigger(policy)):
        return name  # an adaptive threshold has moved since: nobody knows what it was
    return _threshold_line(catalogue, name, found.at)


def _threshold_line(catalogue: Catalogue, trigger: str, at: Threshold) -> str:
    if at.tokens is not None and at.share is not None:
        return trigger  # the smaller of the two counted, which depends on the window
    if at.tokens is not None:
        return catalogue.text("at.tokens", trigger=trigger, count=at.tokens)
    if at.messages is not None:
        return catalogue.text("at.messages", trigger=trigger, count=at.messages)
    kind, share = ("share", at.share) if at.share is not None else ("window", at.window or 0)
    return catalogue.text(f"at.{kind}", trigger=trigger, percent=percent(share))


def percent(share: float) -> float:
    """A share as it was written, in percent: 0.7 is 70, 0.075 is 7.5."""
    percents = exact_share(share) * 100
    return int(percents) if percents.denominator == 1 else float(percents)


def figure_labels(catalogue: Catalogue, figures: Mapping[str, Any]) -> dict[str, str]:
    """A label for every figure and every list of figures, by its path, such as ``tokens.saved``.

    The path of something in a list has no number in it. A figure that has no label is left out.
    """
    found = ((path, _label(catalogue, path)) for path in dict.fromkeys(_paths(figures, "")))
    return {path: label for path, label in found if label}


def _label(catalogue: Catalogue, path: str) -> str:
    if path.startswith(_LATENCY) and path.count(".") > 1:
        what, figure = path.removeprefix(_LATENCY).split(".", 1)
        words = {"what": catalogue.word("stats.latency", what), "figure": catalogue.word("stats.latency", figure)}
        return catalogue.text("stats.latency.line", **words)
    key = f"stats.{_LEVELS.sub('', path)}"
    return catalogue.text(key) if catalogue.has(key) else ""


def _paths(figures: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, item in figures.items():
        here = f"{path}{name}"
        yield here
        for one in item if isinstance(item, list) else [item]:
            if isinstance(one, Mapping):
                yield from _paths(one, f"{here}.")
