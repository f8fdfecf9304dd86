"""What single models accept, where pydantic-ai's own data does not say."""

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
    Refuses,
    ToolSpec,
    reads_no_media,
    takes_everything,
    unknown_cost,
)

GEMINI_INPUT_LIMIT: Final = 1_000_000
"""The limit of the default Gemini model in pydantic-ai's data (a test compares); the offline model has the same."""

GEMINI_OUTPUT_LIMIT: Final = 65_536
"""The limit of every Gemini text model since 2.5; pydantic-ai's data has no output limits."""

UNKNOWN_INPUT_LIMIT: Final = 128_000
UNKNOWN_OUTPUT_LIMIT: Final = 8_192
"""What nearly every hosted model of these years takes; ``model_input_limit`` is there for the others."""

OFFLINE_CHUNK_TOKENS: Final = 8_000
"""More than this the extractive compressor does not digest at once: its sentence ranking is quadratic."""


def profile_of(
    name: str,
    *,
    bundled: int | None,
    override: int | None,
    stateful: bool = False,
    caches: CacheTerms | None = None,
    cost: Cost = unknown_cost,
    refuses: Refuses = takes_everything,
    reads_media: ReadsMedia = reads_no_media,
    file_account: str | None = None,
) -> ModelProfile:
    """The limits and the price of a provider's model.

    Args:
        name: ``provider:model``.
        bundled: The context window in pydantic-ai's data, in tokens, where it has one.
        override: The operator's own word on the input limit, which beats every table.
        stateful: Whether its provider keeps the context of a chat.
        caches: How its provider keeps caches, if it does.
        cost: What it asks for reading and writing so many tokens.
        refuses: What of a client's settings and tools it cannot take.
        reads_media: Which data it reads.
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
    # Settings of chance and of depth are taken: they change nothing in a quotation.
    return {} if settings.output is None else {"response_format": "the offline model only quotes"}
