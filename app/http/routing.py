"""Routes that check in the right order: first the key, then whether the request can be read, then its fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Final

from fastapi import APIRouter, Depends, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import Response

from app.core.model.errors import FieldError
from app.core.model.records import Scope
from app.http.auth import authorize
from app.http.json_responses import with_json_off_loop
from app.http.refusals import invalid_input
from app.http.strict_json import JsonRequest

SHOWN_NAME: Final = 64
"""How many characters of an unknown parameter's name an error repeats."""
ONE_VALUE: Final = ("Idempotency-Key", "If-Match", "Last-Event-ID")
"""Headers that may have only one value."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRoute(APIRoute):
    """A route that refuses unknown query parameters, and single-valued headers that are given twice.

    So neither a misspelt name nor a key is ever silently ignored.

    Large bodies are checked, and large answers written, off the event loop. The OpenAPI document calls it by its name.
    """

    passes_over: ClassVar[bool] = False
    """Whether unknown parameters are ignored instead."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **further: Any) -> None:
        answering = with_json_off_loop(endpoint, lambda: self.status_code)
        super().__init__(path, answering, **{**further, "generate_unique_id_function": _route_name})

    def get_route_handler(self) -> Handler:
        """Put the checks before the framework's handler."""
        handle = super().get_route_handler()
        known = frozenset(item.alias for item in get_flat_params(self.dependant) if isinstance(item.field_info, Query))

        async def checked(request: Request) -> Response:
            strict = JsonRequest(request.scope, request.receive)
            await self.admit(strict)
            _refuse_query(strict, known, passes_over=self.passes_over)
            _refuse_repeated_headers(strict)
            if self.body_field is not None:
                await strict.read()
                await strict.checked(self.body_field)
            return await handle(strict)

        return checked

    async def admit(self, request: Request) -> None:
        """Check nothing: everybody may use the route."""


def _route_name(route: APIRoute) -> str:
    return route.name


class TenantRoute(StrictRoute):
    """A route of a tenant: it needs the scope ``read`` for reading, and ``write`` for everything else."""

    scope: ClassVar[Scope | None] = None
    placeholders: ClassVar[bool] = False
    """Whether any text counts as no key, if no key is needed."""

    async def admit(self, request: Request) -> None:
        """Require a key with the needed scope."""
        scope = self.scope or ("read" if request.method in {"GET", "HEAD"} else "write")
        await authorize(request, scope, placeholders=self.placeholders)


class AdminRoute(TenantRoute):
    """A route for operations."""

    scope = "admin"


class _DescribedKey(HTTPBearer):
    """Describes the key in the OpenAPI document only. The route itself checks it, before the body is read."""

    async def __call__(self) -> None:  # type: ignore[override]
        """Check nothing."""


_DESCRIBED_KEY: Final = _DescribedKey(auto_error=False, scheme_name="key", description="Scopes: read, write, admin.")


def keyed_router(prefix: str, tag: str, route_class: type[TenantRoute] = TenantRoute, **further: Any) -> APIRouter:
    """A router for routes that need a key; the OpenAPI document says so for each."""
    key = [Depends(_DESCRIBED_KEY)]
    return APIRouter(prefix=prefix, route_class=route_class, tags=[tag], dependencies=key, **further)


def _refuse_repeated_headers(request: Request) -> None:
    # It would be a guess to take either of the two values.
    given = Counter(name for name, _ in request.scope["headers"])
    if twice := [name for name in ONE_VALUE if given[name.lower().encode()] > 1]:
        raise invalid_input([FieldError(field=name, message="is given twice; send it once") for name in twice])


def _refuse_query(request: Request, known: frozenset[str], *, passes_over: bool) -> None:
    """Refuse unknown parameters, unless they are ignored, and known ones that are given twice or cannot be stored.

    Values in the path are refused too if they contain a NUL.

    Raises:
        InvalidInputError: Naming each.
    """
    if not request.scope["query_string"] and not any("\0" in str(value) for value in request.path_params.values()):
        return
    given = Counter(name for name, _ in request.query_params.multi_items())
    there_are = f"; there are {', '.join(sorted(known))}" if known else "; there are none"
    unknown = [
        (name[:SHOWN_NAME], f"is not a parameter of this request{there_are}")
        for name in given.keys() - known
        if not passes_over
    ]
    twice = [(name, "is given twice") for name in known if given[name] > 1]
    texts = {name: value for name, value in request.query_params.items() if name in known} | request.path_params
    unstorable = [(name, "must not contain the character NUL") for name, value in texts.items() if "\0" in str(value)]
    if faults := sorted(unknown + twice + unstorable):
        raise invalid_input([FieldError(field=name, message=message) for name, message in faults])
