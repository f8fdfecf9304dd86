"""JSON responses: large ones are written here, off the event loop; the framework writes small ones on the loop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel
from starlette.responses import Response

from app.off_loop import BYTES_PER_ITEM, MAX_BYTES_ON_LOOP, off_loop

_MEDIA_TYPE: Final = "application/json"
_LARGE_FROM: Final = 10 * MAX_BYTES_ON_LOOP
"""The most bytes of an answer that is written on the loop. Writing does not search the text, so it may be large."""
_TEXT_TYPES: Final = (str, bytes)
_PLAIN_TYPES: Final = frozenset({NoneType, bool, int, float, UUID, datetime})
"""The types of most values in an answer."""
_LIST_TYPES: Final = (list, tuple, set, frozenset)


def with_json_off_loop(endpoint: Callable[..., Any], status_of: Callable[[], int | None]) -> Callable[..., Any]:
    """The endpoint, with a large result already written as JSON.

    ``status_of`` gives the status of the endpoint's answers.
    """
    if not inspect.iscoroutinefunction(endpoint):
        return endpoint

    @functools.wraps(endpoint)
    async def with_json(*args: Any, **given: Any) -> Any:
        result = await endpoint(*args, **given)
        if not isinstance(result, BaseModel) or not is_large(result):
            return result
        body = await off_loop(lambda: result.model_dump_json(by_alias=True))
        own = next((value for value in given.values() if isinstance(value, Response)), None)
        status = (own.status_code if own is not None else None) or status_of() or 200
        headers = (
            {} if own is None else {name: value for name, value in own.headers.items() if name != "content-length"}
        )
        return Response(body, status_code=status, headers=headers, media_type=_MEDIA_TYPE)

    return with_json


def is_large(value: Any) -> bool:
    """Whether writing the value takes longer than the loop can spare. No more of it is read than needed to know."""
    left_bytes = _LARGE_FROM
    waiting: list[Iterable[Any]] = [(value,)]
    while waiting:
        for item in waiting.pop():
            if isinstance(item, _TEXT_TYPES):
                left_bytes -= len(item)
            else:
                left_bytes -= BYTES_PER_ITEM // 4
                if type(item) not in _PLAIN_TYPES:
                    waiting.append(_inner_values(item))
            if left_bytes <= 0:
                return True
    return False


def _inner_values(item: Any) -> Iterable[Any]:
    if isinstance(item, _LIST_TYPES):
        return item
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, BaseModel):  # looking up a model's class would take longest
        return item.__dict__.values()
    return item.values() if isinstance(item, Mapping) else ()
