"""JSON merge patch (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The target with the patch applied: ``None`` removes a member, objects merge, anything else replaces."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            present = merged.get(name)
            merged[name] = merge_patch(present if isinstance(present, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged
