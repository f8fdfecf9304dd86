"""The types of input fields: their limits, and errors that say what to do."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from app.core.context.turn_options import SCHEMA_BYTES
from app.core.model.json_sizes import METADATA_BYTES, SCRATCHPAD_BYTES, json_bytes
from app.core.text.patterns import compiled

MAX_CONTENT_LENGTH: Final = 4_000_000
"""The most characters of a text outside messages: one to count, or a tool's description, arguments or error."""
MAX_SYSTEM_PROMPT_LENGTH: Final = 400_000
MAX_POLICY_BYTES: Final = 32_768
"""The most bytes of a policy as JSON."""
MAX_BATCH_MESSAGES: Final = 1_000
MAX_PARTS: Final = 256
MAX_QUERY_LENGTH: Final = 20_000
MAX_PASSAGE_LENGTH: Final = 400_000
MAX_PASSAGES: Final = 100
MAX_TOKENS: Final = 100_000_000
FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 9000
"""Times outside of these years could overflow when moved between time zones."""
_DATE: Final = compiled(r"\d{4}-\d\d-\d\d", re.ASCII)
_LANGUAGE_TAG: Final = compiled(r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")


class Input(BaseModel):
    """A request body: immutable, and without fields that are not defined."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _limited_json_size(limit: int) -> AfterValidator:
    def check(value: dict[str, Any]) -> dict[str, Any]:
        size = json_bytes(value)
        if size > limit:
            raise ValueError(f"is {size} bytes as JSON, at most {limit} are kept")
        return value

    return AfterValidator(check)


def refuse_number_as_time(value: object) -> object:
    """Refuse a number, also as text, as a time, since seconds and milliseconds cannot be told apart.

    Raises ``ValueError``.
    """
    if not isinstance(value, str) or not _DATE.match(value):
        raise ValueError("must be a time in ISO 8601 with an offset, as in 2026-11-20T09:30:00Z")
    return value


def is_within_reach(value: datetime) -> bool:
    """Whether a time with a zone can be stored and shown in UTC."""
    return FIRST_YEAR <= value.year <= LAST_YEAR and FIRST_YEAR <= value.astimezone(UTC).year <= LAST_YEAR


def _within_reach(value: datetime) -> datetime:
    if not is_within_reach(value):
        raise ValueError(f"must be between the years {FIRST_YEAR} and {LAST_YEAR}")
    return value


def _language_tag(value: object) -> object:
    # The pattern of the field stays, for the schema; its own error would only repeat it.
    if isinstance(value, str) and not _LANGUAGE_TAG.fullmatch(value):
        raise ValueError("must be a language tag (BCP 47), such as `en` or `pt-BR`")
    return value


def _file_name(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("must be a name of printable characters")
    return value


def _event_type(value: str) -> str:
    if not value.strip():
        raise ValueError("event_type cannot be empty")
    return value


Title = Annotated[str, Field(max_length=500)]
FileName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_file_name)]
UserId = Annotated[str, Field(min_length=1, max_length=255)]
Locale = Annotated[
    str,
    Field(max_length=35, pattern=_LANGUAGE_TAG.pattern, description="BCP 47, as in `en` or `pt-BR`."),
    BeforeValidator(_language_tag),
]
SystemPrompt = Annotated[str, Field(max_length=MAX_SYSTEM_PROMPT_LENGTH)]
PresetName = Annotated[str, Field(min_length=1, max_length=64)]
PresetVersion = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
EventType = Annotated[
    str,
    Field(max_length=64, description="`casual`, `initial_objective`, `constraint`, `goal` … or a word of your own."),
    AfterValidator(_event_type),
]
Focus = Annotated[str, Field(min_length=1, max_length=1_000)]
Count = Annotated[int, Strict(), Field(ge=0, le=MAX_TOKENS)]
Budget = Annotated[int, Field(ge=1, le=MAX_TOKENS, description="Tokens after the system prompt and the files.")]
Seq = Annotated[int, Strict(), Field(ge=1, le=2**63 - 1)]
Version = Annotated[
    int, Field(ge=0, le=2**31 - 1, description="0: as before the first compaction, with nothing covered.")
]
Query = Annotated[
    str, Field(min_length=1, max_length=MAX_QUERY_LENGTH, description="What earlier messages are found for.")
]
Flag = Annotated[bool, Strict()]
Time = Annotated[AwareDatetime, AfterValidator(_within_reach), BeforeValidator(refuse_number_as_time)]
Temperature = Annotated[float, Strict(), Field(ge=0, le=2)]
Probability = Annotated[float, Strict(), Field(ge=0, le=1)]
Penalty = Annotated[float, Strict(), Field(ge=-2, le=2)]
OutputTokens = Annotated[int, Strict(), Field(ge=1, le=MAX_TOKENS, description="Of each step of the turn.")]
UtcOffset = Annotated[
    int,
    Strict(),
    Field(ge=-840, le=840, description="Minutes from UTC to the user's clock: their day is the message's."),
]
Seed = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
StopText = Annotated[str, Field(min_length=1, max_length=1_000)]
ToolLabel = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Schema = Annotated[dict[str, Any], _limited_json_size(SCHEMA_BYTES)]
Metadata = Annotated[dict[str, Any], _limited_json_size(METADATA_BYTES)]
Scratchpad = Annotated[dict[str, Any], _limited_json_size(SCRATCHPAD_BYTES)]
Overrides = Annotated[
    dict[str, Any], _limited_json_size(MAX_POLICY_BYTES), Field(description="Fields of the preset's policy.")
]
