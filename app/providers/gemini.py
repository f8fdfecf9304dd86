"""Gemini through pydantic-ai and google-genai, at Google or wherever the base URL points."""

from __future__ import annotations

import asyncio
import hashlib
import io
import warnings
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from google.genai.errors import APIError
from google.genai.types import File, FileState, GenerateContentResponse, HttpOptions, Part, UploadFileConfig
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers import Provider
from pydantic_ai.providers.google import GoogleProvider

from app.core.model.errors import InvalidInputError, ModelUnavailableError
from app.core.model.files import FILE_FAILED, FILE_LOST, FILE_PROCESSING, FileCopy
from app.providers.failures import unavailable
from app.providers.replies import is_id

PROVIDER: Final = "google"
KINDS: Final = frozenset({PROVIDER, "google-cloud"})
"""The providers whose models are Gemini's: the Gemini API, and Google Cloud."""

_MEDIA_PREFIXES: Final = ("image/", "audio/", "video/", "text/")
_MEDIA_TYPES: Final = frozenset({"application/pdf"})
_FILE_LIFETIME: Final = timedelta(hours=48)
"""How long a file is kept if the answer does not say so."""
_MISSING_STATUSES: Final = frozenset({403, 404})
"""Google answers 403 for a file of another key and for a deleted file."""
PROCESSING_SECONDS: Final = 20.0
"""How long a turn waits for a file that is being processed."""
_FIRST_POLL_SECONDS: Final = 0.25
_MAX_POLL_SECONDS: Final = 2.0


def make_provider(api_key: str | None, base_url: str | None) -> Provider[Any]:
    """The client of the Gemini API; google-genai repeats nothing unless it is told to."""
    if not api_key:
        raise InvalidInputError("Models of google need a key: set GOOGLE_API_KEY.")
    return GoogleProvider(api_key=api_key, base_url=base_url)


def ignore_warnings() -> None:
    """Keep the library from writing a word of an answer that it does not know, however long, to standard error."""
    warnings.filterwarnings("ignore", module=r"google\.genai\._common")


class GeminiModel(GoogleModel):
    """A model of Google, of whose answers only texts and calls are read.

    The library refuses a whole answer for one part that it does not understand, as for one that has nothing but the
    mark of a thought.
    """

    def _process_response(
        self, response: GenerateContentResponse, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        return super()._process_response(_with_read_parts(response), model_request_parameters)

    async def _process_streamed_response(
        self, response: AsyncIterator[GenerateContentResponse], model_request_parameters: ModelRequestParameters
    ) -> StreamedResponse:
        read = (_with_read_parts(chunk) async for chunk in response)
        return await super()._process_streamed_response(read, model_request_parameters)


def _with_read_parts(response: GenerateContentResponse) -> GenerateContentResponse:
    for candidate in response.candidates or ():
        if candidate.content and candidate.content.parts:
            candidate.content.parts = list(filter(_is_read, candidate.content.parts))
    return response


def _is_read(part: Part) -> bool:
    return part.text is not None or bool(part.function_call and part.function_call.name is not None)


def make_model(name: str, provider: Provider[Any]) -> Model:
    """The model of that name, without its provider's prefix."""
    return GeminiModel(name, provider=provider)


def takes_media(media_type: str) -> bool:
    """Whether Gemini reads media of this type inline."""
    return media_type.startswith(_MEDIA_PREFIXES) or media_type in _MEDIA_TYPES


def file_account(api_key: str | None, base_url: str | None) -> str | None:
    """A hash that names where files are kept. It is the same for the same key and address, and reveals neither."""
    if not api_key:
        return None
    return hashlib.sha256(f"{PROVIDER}\n{base_url or ''}\n{api_key}".encode()).hexdigest()[:16]


async def upload_file(provider: Provider[Any], data: bytes, media_type: str, timeout: float) -> FileCopy:  # noqa: ASYNC109 - the client's own
    """Upload a file; it may be processed for a while yet. Raises ``ModelUnavailableError``.

    It runs in a thread, since the asynchronous client blocks the event loop while it waits to repeat an upload.
    """
    options = HttpOptions(timeout=round(timeout * 1_000))
    config = UploadFileConfig(mime_type=media_type, http_options=options)
    try:
        kept: File = await asyncio.to_thread(provider.client.files.upload, file=io.BytesIO(data), config=config)
    except Exception as error:  # noqa: BLE001 - whatever its client throws, callers must see our word
        raise _unavailable(error) from None
    if not (is_id(kept.name) and is_id(kept.uri)):
        raise ModelUnavailableError("unreadable", retryable=True)
    expires_at = kept.expiration_time or datetime.now(UTC) + _FILE_LIFETIME
    return FileCopy(name=kept.name, uri=kept.uri, expires_at=expires_at)


async def await_file(provider: Provider[Any], name: str, timeout: float) -> None:  # noqa: ASYNC109 - the client's own
    """Ask about a file until it can be used, for at most ``PROCESSING_SECONDS``. Raises ``ModelUnavailableError``."""
    pause, left = _FIRST_POLL_SECONDS, PROCESSING_SECONDS
    while True:
        state = await _file_state(provider, name, timeout)
        if state in {None, FileState.ACTIVE, FileState.STATE_UNSPECIFIED}:
            return
        if state == FileState.FAILED:
            raise ModelUnavailableError(FILE_FAILED, retryable=False)
        if left <= 0:
            raise ModelUnavailableError(FILE_PROCESSING, retryable=True)
        await asyncio.sleep(pause)
        left, pause = left - pause, min(pause * 2, _MAX_POLL_SECONDS)


async def _file_state(provider: Provider[Any], name: str, timeout: float) -> FileState | None:  # noqa: ASYNC109 - the client's own
    try:
        async with asyncio.timeout(timeout):
            found: File = await provider.client.aio.files.get(name=name)
    except Exception as error:  # noqa: BLE001 - likewise
        raise _unavailable(error) from None
    return found.state


async def delete_file(provider: Provider[Any], name: str, timeout: float) -> None:  # noqa: ASYNC109 - the client's own
    """Delete a file that Google keeps. Raises ``ModelUnavailableError``."""
    try:
        async with asyncio.timeout(timeout):
            await provider.client.aio.files.delete(name=name)
    except Exception as error:  # noqa: BLE001 - likewise
        raise _unavailable(error) from None


def _unavailable(error: Exception) -> ModelUnavailableError:
    """Translate the client's own errors, which pydantic-ai does only in its own calls."""
    if not isinstance(error, APIError):
        is_of_road = type(error).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore"}
        if is_of_road:
            return ModelUnavailableError(
                "timeout" if "Timeout" in type(error).__name__ else "connection", retryable=True
            )
        return unavailable(error)
    if error.code in _MISSING_STATUSES:
        return ModelUnavailableError(FILE_LOST, retryable=False, status=error.code)
    return unavailable(ModelHTTPError(error.code, "", error.details))
