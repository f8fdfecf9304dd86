"""The page in a browser: Chromium, driven by the tests of ``web/tests``. ``make test-page`` installs what they need."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from app.core.model.model_io import ChatRequest, StepEvent
from app.providers.offline import OfflineChat
from tests.acceptance.conftest import SharedServices
from tests.acceptance.service import Service
from tests.gemini_server import Gemini
from tests.servers import ROOT

WEB: Final = ROOT / "web"
PARTS: Final = ("talk", "views", "history", "files", "settings", "losses", "connection", "panels", "places")
CHROMIUM: Final = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
PATIENCE: Final = 1_800
SLOWLY: Final = "slowly"
PACE: Final = 1.5
"""Seconds between two pieces of a reply that was asked for slowly."""

pytestmark = [pytest.mark.long]


@pytest.fixture(scope="module")
def slow_where_asked() -> Iterator[None]:
    """Make a reply slow if its question contains ``SLOWLY``, so that a test can do something meanwhile."""
    step = OfflineChat.step

    async def paced(self: OfflineChat, request: ChatRequest) -> AsyncIterator[StepEvent]:
        is_slow = SLOWLY in request.messages[-1].content
        async for event in step(self, request):
            yield event
            await asyncio.sleep(PACE if is_slow else 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OfflineChat, "step", paced)
        yield


@pytest.fixture
def service(shared_services: SharedServices, slow_where_asked: None) -> Service:
    return shared_services.get("page", processes=False)


@pytest.fixture(autouse=True)
def _browser() -> None:
    if not Path(CHROMIUM).exists():
        pytest.skip("needs the Debian package chromium")
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        pytest.skip("needs a package index: `make test-page` installs what drives the browser")


@pytest.mark.parametrize("name", PARTS)
def test_in_chromium(service: Service, name: str) -> None:
    drive(name, service)


def test_thoughts_in_chromium(gemini_service: Service, gemini: Gemini) -> None:
    """The tests run over a model that shows its thoughts, as the test scripts it."""
    drive("thoughts", gemini_service, GEMINI_URL=gemini.url)


def drive(name: str, service: Service, **further: str) -> None:
    """Run the tests of one file of ``web/tests`` against the service; they must pass."""
    done = subprocess.run(
        ["node", "--test", "--test-reporter=spec", f"tests/{name}.test.mjs"],
        cwd=WEB,
        env={**os.environ, "THROUGHLINE_URL": service.url, "CHROMIUM": CHROMIUM, **further},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-4_000:]
