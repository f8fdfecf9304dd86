"""Google's files API on the scripted server: resumable uploads, states, expiry, keys, quotas; and what requests name.

Control: ``POST /files/script {processing?, fails?, quota?, lifetime?}``, ``POST /files/forget {name?}``,
``GET /files/kept``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.gemini_faults import Answer, error

AT: Final = "https://generativelanguage.googleapis.com/v1beta/"
"""The beginning of every file's address is Google's, wherever the server listens."""
LIFETIME: Final = 48 * 3_600.0


@dataclass(slots=True, kw_only=True)
class Kept:
    """A stored file; it can be used after it was looked at ``left`` times."""

    name: str
    key: str
    media_type: str
    data: bytes
    made_at: datetime
    expires_at: datetime
    left: int
    fails: bool

    @property
    def state(self) -> str:
        if self.left > 0:
            return "PROCESSING"
        return "FAILED" if self.fails else "ACTIVE"

    def described(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.data).hexdigest().encode()
        return {
            "name": self.name,
            "mimeType": self.media_type,
            "sizeBytes": str(len(self.data)),
            "createTime": _time(self.made_at),
            "updateTime": _time(self.made_at),
            "expirationTime": _time(self.expires_at),
            "sha256Hash": base64.b64encode(digest).decode(),
            "uri": f"{AT}{self.name}",
            "state": self.state,
            "source": "UPLOADED",
        }


@dataclass(slots=True)
class _Upload:
    """An upload that is under way."""

    key: str
    media_type: str
    size: int
    data: bytes = b""


@dataclass(slots=True, kw_only=True)
class Faults:
    """How the next uploads are handled."""

    processing: int = 0
    """How many times a file must be looked at before it can be used."""
    fails: bool = False
    """Whether the processing of a file fails in the end."""
    quota: bool = False
    """Whether uploads are refused."""
    lifetime: float = LIFETIME
    """The lifetime of a file in seconds."""


@dataclass(slots=True)
class Files:
    """The files of the server."""

    kept: dict[str, Kept] = field(default_factory=dict)
    uploads: int = 0
    """How many uploads were begun."""
    deleted: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    _under_way: dict[str, _Upload] = field(default_factory=dict)

    def routes(self) -> list[Route]:
        return [
            Route("/upload/v1beta/files", self.upload, methods=["POST"]),
            Route("/v1beta/files/{id}", self.look, methods=["GET"]),
            Route("/v1beta/files/{id}", self.delete, methods=["DELETE"]),
            Route("/files/script", self.change, methods=["POST"]),
            Route("/files/forget", self.forget, methods=["POST"]),
            Route("/files/kept", self.listed),
        ]

    def reset(self) -> None:
        self.kept, self.deleted, self.uploads, self.faults, self._under_way = {}, [], 0, Faults(), {}

    async def upload(self, request: Request) -> Response:
        """Handle the two requests of a resumable upload: its start, and its bytes."""
        command = request.headers.get("x-goog-upload-command", "")
        if command == "start":
            return await self._started(request)
        upload = self._under_way.get(request.query_params.get("upload_id", ""))
        if upload is None or request.headers.get("x-goog-upload-offset") != str(len(upload.data)):
            return _refused(error(400, "INVALID_ARGUMENT", "The upload does not go on from there."))
        upload.data += await request.body()
        if "finalize" not in command:
            return Response(headers={"x-goog-upload-status": "active"})
        if len(upload.data) != upload.size:
            return _refused(error(400, "INVALID_ARGUMENT", "The upload has another size."))
        return JSONResponse({"file": self._keep(upload).described()}, headers={"x-goog-upload-status": "final"})

    async def look(self, request: Request) -> Response:
        kept = self._of(request)
        if kept is None:
            return _refused(_lost(request.path_params["id"]))
        described = kept.described()
        kept.left = max(kept.left - 1, 0)
        return JSONResponse(described)

    async def delete(self, request: Request) -> Response:
        kept = self._of(request)
        if kept is None:
            return _refused(_lost(request.path_params["id"]))
        del self.kept[kept.name]
        self.deleted.append(kept.name)
        return JSONResponse({})

    async def change(self, request: Request) -> Response:
        self.faults = Faults(**await request.json())
        return JSONResponse({})

    async def forget(self, request: Request) -> Response:
        """Let all files expire, or only the named one."""
        name = (await request.json()).get("name")
        self.kept = {kept.name: kept for kept in self.kept.values() if name not in {None, kept.name}}
        return JSONResponse({})

    async def listed(self, _: Request) -> Response:
        kept = [one.described() for one in self.kept.values()]
        return JSONResponse({"kept": kept, "uploads": self.uploads, "deleted": self.deleted})

    def refusal(self, body: Mapping[str, Any], key: str) -> Response | None:
        """The refusal of a model call that names an unusable file, in Google's words; ``None`` for other calls."""
        for uri in _named(body):
            id_ = uri.removeprefix(f"{AT}files/")
            kept = self._usable(f"files/{id_}", key)
            if kept is None:
                return _refused(_lost(id_))
            if kept.state != "ACTIVE":
                message = f"The File {id_} is not in an ACTIVE state and usage is not allowed."
                return _refused(error(400, "FAILED_PRECONDITION", message))
        return None

    async def _started(self, request: Request) -> Response:
        self.uploads += 1
        key = request.headers.get("x-goog-api-key", "")
        if self.faults.quota:
            return _refused(error(429, "RESOURCE_EXHAUSTED", "You have exceeded the storage quota for files."))
        if request.headers.get("x-goog-upload-protocol") != "resumable" or not key:
            return _refused(error(400, "INVALID_ARGUMENT", "Only resumable uploads are taken."))
        id_ = str(self.uploads)
        media_type = request.headers["x-goog-upload-header-content-type"]
        size = int(request.headers["x-goog-upload-header-content-length"])
        self._under_way[id_] = _Upload(key, media_type, size)
        where = f"{request.base_url}upload/v1beta/files?upload_id={id_}&upload_protocol=resumable"
        return Response(headers={"x-goog-upload-url": where, "x-goog-upload-status": "active"})

    def _keep(self, upload: _Upload) -> Kept:
        now = datetime.now(UTC)
        name = f"files/f{self.uploads}{hashlib.sha256(upload.data).hexdigest()[:8]}"
        self.kept[name] = kept = Kept(
            name=name,
            key=upload.key,
            media_type=upload.media_type,
            data=upload.data,
            made_at=now,
            expires_at=now + timedelta(seconds=self.faults.lifetime),
            left=self.faults.processing,
            fails=self.faults.fails,
        )
        return kept

    def _of(self, request: Request) -> Kept | None:
        return self._usable(f"files/{request.path_params['id']}", request.headers.get("x-goog-api-key", ""))

    def _usable(self, name: str, key: str) -> Kept | None:
        kept = self.kept.get(name)
        return kept if kept is not None and kept.key == key and kept.expires_at > datetime.now(UTC) else None


def _named(body: Mapping[str, Any]) -> Iterator[str]:
    for content in body.get("contents", []):
        for part in content.get("parts", []):
            if "fileData" in part:
                yield spelled(part["fileData"])["fileUri"]


def spelled(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with camel-case names: Google accepts both spellings, and so do tests that look at what was sent."""
    words = {name: name.split("_") for name in data}
    return {first + "".join(map(str.title, more)): data[name] for name, (first, *more) in words.items()}


def _lost(id_: str) -> Answer:
    message = f"You do not have permission to access the File {id_} or it may not exist."
    return error(403, "PERMISSION_DENIED", message)


def _refused(given: Answer) -> Response:
    return JSONResponse(given.error, status_code=given.status)


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
