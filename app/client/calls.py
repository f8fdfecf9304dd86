"""Requests as values: what is sent, and how the answer is read. Nothing here does input or output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from .resources import Page

T = TypeVar("T")
Item = TypeVar("Item")
Id = str | UUID

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[bytes], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_headers(self, **headers: str) -> Call[T]:
        """This call with further headers; underscores in their names become hyphens."""
        added = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **added})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCall(Generic[Item]):
    """A list: its first page, and from each page the next one."""

    first: Call[Page[Item]]

    def after(self, page: Page[Item]) -> Call[Page[Item]] | None:
        """The call for the page after this one; ``None`` if there is none."""
        if not page.has_more or page.next_cursor is None:
            return None
        return replace(self.first, params={**self.first.params, "after": page.next_cursor})


def get(path: str, read: Callable[[bytes], T], **params: Any) -> Call[T]:
    """A ``GET``; parameters that are ``None`` are left out."""
    set_fields = {name: to_jsonable_python(value) for name, value in params.items() if value is not None}
    return Call(method="GET", path=path, read=read, params=set_fields, headers={"Accept": JSON})


def post(
    path: str, read: Callable[[bytes], T], body: Mapping[str, Any] | None = None, *, key: str | None = None
) -> Call[T]:
    """A ``POST`` with an idempotency key, so that it has one effect however often it is sent."""
    headers = {"Accept": JSON, "Content-Type": JSON, "Idempotency-Key": key or str(uuid4())}
    return Call(method="POST", path=path, read=read, body=_json_bytes(body or {}), headers=headers)


def change(method: str, path: str, read: Callable[[bytes], T], body: Mapping[str, Any] | None = None) -> Call[T]:
    """A ``PATCH``, ``PUT`` or ``DELETE``. Sent twice it has the same effect as once, so it needs no key."""
    headers = {"Accept": JSON} if body is None else {"Accept": JSON, "Content-Type": JSON}
    return Call(method=method, path=path, read=read, body=None if body is None else _json_bytes(body), headers=headers)


def resource_reader(resource: type[T]) -> Callable[[bytes], T]:
    """Makes a function that reads one resource."""
    assert issubclass(resource, BaseModel)  # noqa: S101 - of this package
    read: Callable[[bytes], T] = resource.model_validate_json
    return read


def ignore_body(_: bytes) -> None:
    """Reads an answer without a body."""


def raw_body(body: bytes) -> bytes:
    """Reads bytes."""
    return body


def text(body: bytes) -> str:
    """Reads a text."""
    return body.decode()


def any_json(body: bytes) -> Any:
    """Reads any JSON."""
    return json.loads(body)


def set_fields(**fields: Any) -> dict[str, Any]:
    """The fields that are not ``None``."""
    return {name: value for name, value in fields.items() if value is not None}


def _json_bytes(body: Mapping[str, Any]) -> bytes:
    return json.dumps(to_jsonable_python(body), ensure_ascii=False, allow_nan=False).encode()
