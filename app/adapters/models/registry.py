"""Names to models: ``offline``, or ``provider:model`` as pydantic-ai writes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from app.adapters.models import offline
from app.adapters.models.keys import Keys
from app.ports import ChatModel, Summarizer

if TYPE_CHECKING:
    from app.adapters.models.shelf import Shelf

MODEL_TIMEOUT: Final = 60.0  # seconds
FAILURES_TO_OPEN: Final = 5
CIRCUIT_PAUSE: Final = 30.0  # seconds


class ModelRegistry:
    """The models of one process, by name.

    Nothing is built before it is asked for, so a registry may be made before a fork. Timeouts are in seconds and
    bound a whole call. ``input_limit``, where set, is the word of the operator on every provider's model.
    ``failures_to_open`` failures of a provider in a row open a model's circuit for ``circuit_pause`` seconds.
    """

    def __init__(
        self,
        *,
        chat: str = offline.NAME,
        compaction: str = offline.NAME,
        google_api_key: str | None = None,
        google_base_url: str | None = None,
        openai_api_key: str | None = None,
        openai_base_url: str | None = None,
        input_limit: int | None = None,
        chat_timeout: float = MODEL_TIMEOUT,
        compaction_timeout: float = MODEL_TIMEOUT,
        failures_to_open: int = FAILURES_TO_OPEN,
        circuit_pause: float = CIRCUIT_PAUSE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chat = chat
        self._compaction = compaction
        self._keys = Keys(
            google_api_key=google_api_key,
            google_base_url=google_base_url,
            openai_api_key=openai_api_key,
            openai_base_url=openai_base_url,
        )
        self._input_limit = input_limit
        self._chat_timeout = chat_timeout
        self._compaction_timeout = compaction_timeout
        self._failures_to_open = failures_to_open
        self._circuit_pause = circuit_pause
        self._monotonic = monotonic
        self._shelf: Shelf | None = None

    def chat(self, name: str | None = None) -> ChatModel:
        """The chat model of that name, or the configured one. Raises ``InvalidInputError``."""
        name = name or self._chat
        return offline.OfflineChat() if name == offline.NAME else self._open().chat(name, self._chat_timeout)

    def summarizer(self, name: str | None = None) -> Summarizer:
        """The summarizer of that name, or the configured compaction model. Raises ``InvalidInputError``."""
        name = name or self._compaction
        if name == offline.NAME:
            return offline.OfflineSummarizer()
        return self._open().summarizer(name, self._compaction_timeout)

    async def close(self) -> None:
        """Close every client; a model asked for afterwards is built anew."""
        shelf, self._shelf = self._shelf, None
        if shelf is not None:
            await shelf.close()

    def _open(self) -> Shelf:
        if self._shelf is None:
            # pydantic-ai takes a second to import, and a process that runs offline needs none of it.
            from app.adapters.models.shelf import Breaking, Shelf  # noqa: PLC0415

            breaking = Breaking(failures=self._failures_to_open, pause=self._circuit_pause, monotonic=self._monotonic)
            self._shelf = Shelf(keys=self._keys, input_limit=self._input_limit, breaking=breaking)
        return self._shelf
