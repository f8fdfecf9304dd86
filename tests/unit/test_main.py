"""The settings of the API's server."""

from __future__ import annotations

from typing import Any

import pytest
import uvicorn

from app import main
from app.http.connections import MAX_HEAD_BYTES, ConnectionLimits
from app.settings import Settings


def test_frames_of_a_socket_and_heads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(uvicorn, "run", lambda _, **further: given.update(further))
    monkeypatch.setattr(main, "settings_of_process", lambda: Settings(_env_file=None, max_body_bytes=5_000_000))
    monkeypatch.setattr(main, "limits_of", lambda _: ConnectionLimits(head_seconds=1, unread_seconds=1, most=1))
    main.main([])
    assert given["ws_per_message_deflate"] is False, "nothing that would have to be unpacked"
    assert given["ws_max_size"] == 10_000_000
    assert given["h11_max_incomplete_event_size"] == MAX_HEAD_BYTES
