"""The limits of models, where pydantic-ai's own data does not have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.model_io import (
    OFFLINE,
    CacheTerms,
    CallSettings,
    Cost,
    ModelProfile,
    ReadsMedia,
    RefusedSettings,
    ToolSpec,
    reads_no_media,
    refuses_nothing,
    unknown_cost,
)

GEMINI_INPUT_LIMIT: Final = 1_000_000
"""The limit of the default Gemini model in pydantic-ai's data (a test compares); the offline model has the same."""

GEMINI_OUTPUT_LIMIT: Final = 65_536
"""The limit of every Gemini text model since 2.5; pydantic-ai's data has no output limits."""

UNKNOWN_INPUT_LIMIT: Final = 128_000
UNKNOWN_OUTPUT_LIMIT: Final = 8_192
"""Limits that nearly every hosted model has today. For others there is the setting ``model_input_limit``."""

OFFLINE_CHUNK_TOKENS: Final = 8_000
"""The most tokens that the offline summarizer reads at once: its ranking of sentences takes quadratic time."""


def profile_of(
    name: str,
    *,
    bundled: int | None,
    override: int | None,
    stateful: bool = False,
    caches: CacheTerms | None = None,
    cost: Cost = unknown_cost,
    refuses: RefusedSettings = refuses_nothing,
    reads_media: ReadsMedia = reads_no_media,
    file_account: str | None = None,
) -> ModelProfile:
    """The limits and the price of a provider's model.

    Args:
        name: ``provider:model``.
        bundled: The context window in tokens by pydantic-ai's data; ``None`` if it has none.
        override: The input limit that the operator set, which takes precedence over every table.
        stateful: Whether its provider keeps the context of a chat.
        caches: How its provider keeps caches, if it does.
        cost: The price of a call, by tokens read and written.
        refuses: Which of a client's settings and tools it cannot take.
        reads_media: Which media types it reads.
        file_account: Where its provider keeps files.
    """
    gemini = name.startswith("google")
    input_limit = override or bundled or (GEMINI_INPUT_LIMIT if gemini else UNKNOWN_INPUT_LIMIT)
    output_limit = GEMINI_OUTPUT_LIMIT if gemini else UNKNOWN_OUTPUT_LIMIT
    return ModelProfile(
        name=name,
        input_limit=input_limit,
        output_limit=min(output_limit, input_limit),
        limit_known=bool(override or bundled),
        calls_tools=True,
        stateful=stateful,
        caches=caches,
        cost=cost,
        refuses=refuses,
        reads_media=reads_media,
        file_account=file_account,
    )


def offline_profile() -> ModelProfile:
    """The limits of the offline model: those of the default Gemini model, in small chunks."""
    return ModelProfile(
        name=OFFLINE,
        input_limit=GEMINI_INPUT_LIMIT,
        output_limit=GEMINI_OUTPUT_LIMIT,
        limit_known=True,
        chunk_tokens=OFFLINE_CHUNK_TOKENS,
        metered=False,
        reads_prompts=False,
        refuses=_refused_offline,
    )


def _refused_offline(settings: CallSettings, _tools: Sequence[ToolSpec]) -> dict[str, str]:
    # Settings for randomness and reasoning depth are accepted, since they do not change quotations.
    return {} if settings.output is None else {"response_format": "the offline model only quotes"}
