"""How large a client's own JSON may be, wherever it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json

METADATA_BYTES: Final = 16_384
"""The most bytes of a client's metadata: they are labels, not documents."""
SCRATCHPAD_BYTES: Final = 262_144
MERGED_BYTES: Final[Mapping[str, int]] = {"scratchpad": SCRATCHPAD_BYTES, "metadata": METADATA_BYTES}
"""Fields of a conversation that are changed by a merge (RFC 7396): the limit holds for the merged value."""


def json_bytes(value: Mapping[str, Any]) -> int:
    """Bytes of a value as compact JSON in UTF-8."""
    return len(to_json(value))
