"""The parts of a message: four kinds, each with room for further keys of its maker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from app.http.fields import Count

CallId = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    """A part; further keys are kept as given."""

    model_config = ConfigDict(extra="allow", frozen=True)

    _keys: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _note_order(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        part = handler(data)
        if isinstance(data, Mapping):
            part._keys = tuple(data)  # noqa: SLF001 - its own
        return part

    def as_given(self) -> dict[str, Any]:
        """The given keys in their order, so that an original is returned as it was sent."""
        given = self.model_dump(exclude_unset=True)
        return {key: given[key] for key in (*self._keys, *given)}


class TextPart(_Part):
    """Text in addition to ``content``."""

    type: Literal["text"]
    text: str


class ToolCallPart(_Part):
    """A call of a tool by a model."""

    type: Literal["tool_call"]
    id: CallId
    name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: Any


class ToolResultPart(_Part):
    """The result of a tool."""

    type: Literal["tool_result"]
    tool_call_id: CallId
    name: Annotated[str, Field(max_length=200)] | None = None
    content: Any

    @model_validator(mode="before")
    @classmethod
    def _tool_call_id_from_id(cls, data: Any) -> Any:
        # The logs of some agents have ``id`` instead of ``tool_call_id``.
        if isinstance(data, Mapping) and "id" in data and "tool_call_id" not in data:
            return {**data, "tool_call_id": data["id"]}
        return data


class MediaPart(_Part):
    """An image, a sound, a file: by address or inline."""

    type: Literal["media"]
    media_type: Annotated[str, Field(min_length=1, max_length=200)]
    url: Annotated[str, Field(min_length=1, max_length=8_192)] | None = None
    data: Annotated[str, Field(min_length=1, description="Base64.")] | None = None
    tokens: Count | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.url is None) == (self.data is None):
            raise ValueError("give either url or data")
        return self


Part = Annotated[TextPart | ToolCallPart | ToolResultPart | MediaPart, Field(discriminator="type")]
