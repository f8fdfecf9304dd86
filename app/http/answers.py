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

from app.off_loop import BYTES_PER_ITEM, MOST_BYTES_ON_LOOP, off_loop

_MEDIA_TYPE: Final = "application/json"
_SMALL: Final = 10 * MOST_BYTES_ON_LOOP
"""The most bytes of an answer that is written on the loop. Writing does not search the text, so it may be large."""
_TEXTS: Final = (str, bytes)
_PLAIN: Final = frozenset({NoneType, bool, int, float, UUID, datetime})
"""The types of most values in an answer."""
_LISTS: Final = (list, tuple, set, frozenset)


def written_off_loop(endpoint: Callable[..., Any], status_of: Callable[[], int | None]) -> Callable[..., Any]:
    """The endpoint, with a large result already written as JSON.

    ``status_of`` gives the status of the endpoint's answers.
    """
    if not inspect.iscoroutinefunction(endpoint):
        return endpoint

    @functools.wraps(endpoint)
    async def answered(*args: Any, **given: Any) -> Any:
        found = await endpoint(*args, **given)
        if not isinstance(found, BaseModel) or not is_large(found):
            return found
        body = await off_loop(lambda: found.model_dump_json(by_alias=True))
        own = next((value for value in given.values() if isinstance(value, Response)), None)
        status = (own.status_code if own is not None else None) or status_of() or 200
        headers = (
            {} if own is None else {name: value for name, value in own.headers.items() if name != "content-length"}
        )
        return Response(body, status_code=status, headers=headers, media_type=_MEDIA_TYPE)

    return answered


def is_large(value: Any) -> bool:
    """Whether writing the value takes longer than the loop can spare. No more of it is read than needed to know."""
    left = _SMALL
    waiting: list[Iterable[Any]] = [(value,)]
    while waiting:
        for item in waiting.pop():
            if isinstance(item, _TEXTS):
                left -= len(item)
            else:
                left -= BYTES_PER_ITEM // 4
                if type(item) not in _PLAIN:
                    waiting.append(_inner_values(item))
            if left <= 0:
                return True
    return False


def _inner_values(item: Any) -> Iterable[Any]:
    if isinstance(item, _LISTS):
        return item
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, BaseModel):  # looking up a model's class would take longest
        return item.__dict__.values()
    return item.values() if isinstance(item, Mapping) else ()
