"""``cachedContents`` of the scripted Gemini server: made, listed, read, kept for longer, deleted; and used by requests.

Controls, by ``POST /caches``: ``minimum`` (tokens), ``refuse`` (a status for the next creations and changes),
``refuse_times``, ``lost_as`` (the status of a request that names a cache which is not there), ``age`` (seconds by which
every cache is older from now on), ``forget`` (every cache is gone), ``implicit`` (the share of a prompt that the server
caches by itself), ``hold`` (whether none is made until it is taken back). ``GET /caches``: what is kept, and what was
asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.gemini_faults import Answer, error
from tests.gemini_wire import prompt_tokens

DEFAULT_TTL: Final = timedelta(hours=1)
MINIMUM: Final = 4_096
WORDS: Final = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
OWNED: Final = ("systemInstruction", "tools", "toolConfig")
"""Fields that a request may not have together with ``cachedContent``."""


@dataclass(slots=True, kw_only=True)
class Cached:
    """One cache."""

    name: str
    body: Mapping[str, Any]
    tokens: int
    made: datetime
    expires: datetime

    @property
    def model(self) -> str:
        """The name without the prefix of the resource."""
        return str(self.body["model"]).removeprefix("models/")

    def wire(self) -> dict[str, Any]:
        """The cache as Google shows it; its contents cannot be read back."""
        return {
            "name": self.name,
            "model": self.body["model"],
            "displayName": self.body.get("displayName", ""),
            "createTime": _stamp(self.made),
            "updateTime": _stamp(self.made),
            "expireTime": _stamp(self.expires),
            "usageMetadata": {"totalTokenCount": self.tokens},
        }


@dataclass(slots=True)
class Caches:
    """Every cache of the server."""

    kept: dict[str, Cached] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    minimum: int = MINIMUM
    refuse: int | None = None
    refuse_times: int = 0
    lost_as: int = 403
    implicit: float | None = None
    hold: bool = False
    """Whether no cache is made for now, so that requests for one wait."""

    def change(self, given: Mapping[str, Any]) -> None:
        """Set what a test asks for."""
        for name in ("minimum", "refuse", "refuse_times", "lost_as", "implicit", "hold"):
            if name in given:
                setattr(self, name, given[name])
        if given.get("refuse") and "refuse_times" not in given:
            self.refuse_times = 1
        if given.get("forget"):
            self.kept.clear()
        for one in self.kept.values():
            one.expires -= timedelta(seconds=given.get("age", 0))

    async def serve(self, request: Request) -> Response:
        """Handle a call under ``/v1beta/cachedContents``."""
        id_ = request.path_params.get("id")
        name = f"cachedContents/{id_}" if id_ else None
        body = await request.json() if request.method in {"POST", "PATCH"} else {}
        self.log.append({"method": request.method, "name": name, "body": body, "query": dict(request.query_params)})
        refused = self._refused(request)
        if refused is not None:
            return _said(refused)
        if name is None:
            return await self._create(body) if request.method == "POST" else self._list()
        return self._one(request.method, name, body)

    def named(self, body: Mapping[str, Any], model: str) -> Cached | Answer | None:
        """The cache that a request names, or a refusal; ``None`` if it names none."""
        name = body.get("cachedContent")
        if name is None:
            return None
        if any(key in body for key in OWNED):
            return error(
                400,
                "INVALID_ARGUMENT",
                "CachedContent can not be used with GenerateContent request setting system_instruction, tools or"
                " tool_config.",
            )
        found = self._there(name)
        if found is None:
            return error(self.lost_as, WORDS[self.lost_as], "CachedContent not found (or permission denied)")
        if found.model != model:
            return error(
                400,
                "INVALID_ARGUMENT",
                f"Model used by GenerateContent request ({model}) and CachedContent"
                f" ({found.model}) has to be the same.",
            )
        return found

    def _refused(self, request: Request) -> Answer | None:
        if not request.headers.get("x-goog-api-key"):
            return error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
        if self.refuse is None or self.refuse_times <= 0 or request.method not in {"POST", "PATCH", "DELETE"}:
            return None
        self.refuse_times -= 1
        return error(self.refuse, WORDS.get(self.refuse, "UNAVAILABLE"), "The service is currently unavailable.")

    async def _create(self, body: Mapping[str, Any]) -> Response:
        while self.hold:  # noqa: ASYNC110 - a test sets it
            await asyncio.sleep(0.02)
        tokens = prompt_tokens(body)
        if tokens < self.minimum:
            wanted = f"total_token_count={tokens}, min_total_token_count={self.minimum}"
            return _said(error(400, "INVALID_ARGUMENT", f"Cached content is too small. {wanted}"))
        made = datetime.now(UTC)
        one = Cached(
            name=f"cachedContents/{uuid4().hex[:20]}", body=body, tokens=tokens, made=made, expires=made + _ttl(body)
        )
        self.kept[one.name] = one
        return JSONResponse(one.wire())

    def _list(self) -> Response:
        return JSONResponse({"cachedContents": [one.wire() for one in self.kept.values()]})

    def _one(self, method: str, name: str, body: Mapping[str, Any]) -> Response:
        found = self._there(name)
        if found is None:
            return _said(error(self.lost_as, WORDS[self.lost_as], "CachedContent not found (or permission denied)"))
        if method == "DELETE":
            del self.kept[name]
            return JSONResponse({})
        if method == "PATCH":
            found.expires = datetime.now(UTC) + _ttl(body)
        return JSONResponse(found.wire())

    def _there(self, name: str) -> Cached | None:
        found = self.kept.get(name)
        if found is not None and found.expires <= datetime.now(UTC):
            del self.kept[name]
            return None
        return found


def _ttl(body: Mapping[str, Any]) -> timedelta:
    given = body.get("ttl")
    return timedelta(seconds=float(str(given).removesuffix("s"))) if given else DEFAULT_TTL


def _stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _said(refusal: Answer) -> Response:
    return JSONResponse(refusal.error, status_code=refusal.status)
