"""A limit in headers: ``RateLimit-Limit``, ``RateLimit-Remaining`` and ``RateLimit-Reset``.

The IETF's draft (draft-ietf-httpapi-ratelimit-headers) had these three up to its version 06, and most clients use them.
The later form, two structured headers, is not final.
"""

from __future__ import annotations

import math
from typing import Final

from app.core.model.errors import DomainError
from app.core.model.usage_limits import LimitUsage

HEADERS: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def rate_headers(standing: LimitUsage | None) -> dict[str, str]:
    """Headers of an ordinary answer, for the tightest limit; the reset is in seconds."""
    if standing is None:
        return {}
    return _headers(standing.limit, standing.remaining, standing.resets_in)


def refused_headers(error: DomainError) -> dict[str, str]:
    """Headers of a refusal: the limit that was reached, if the error names one."""
    limit, reset = error.extra.get("limit"), error.extra.get("reset_seconds")
    if error.stable_code != "rate_limited" or limit is None or reset is None:
        return {}
    return _headers(limit, 0, reset)


def _headers(limit: float, remaining: float, reset: float) -> dict[str, str]:
    return dict(zip(HEADERS, (f"{limit:.15g}", str(math.floor(remaining)), str(math.ceil(reset))), strict=True))
