"""The configured models are built before a process serves; one that cannot be built is reported in one line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

import app.providers.built_models  # noqa: F401 - takes longer to import than a test waits for a start
from app.bootstrap import make_models
from app.core.model.errors import InvalidInputError
from app.main import create_app
from app.settings import Settings
from tests.unit.api_fakes import Calls, Feed, Keys, fake_container
from tests.unit.test_api_lifespan import Server
from worker import runtime

pytestmark = pytest.mark.usefixtures("plain_logs")


def container(**settings: Any) -> Any:
    """A container with the models of these settings and stand-ins for the rest."""
    chosen = Settings(_env_file=None, **settings)
    made: Any = fake_container(Calls(), Keys(), Feed(), chosen)
    made.parts.models = make_models(chosen)
    return made


async def started(made: Any) -> tuple[Server, Any]:
    server = Server(create_app(container=made))
    return server, await server.start()


async def test_an_api_whose_model_cannot_be_built_does_not_start() -> None:
    _, answer = await started(container(chat_model="openai:gpt-5-mini"))
    assert answer["type"] == "lifespan.startup.failed"
    assert answer["message"] == (
        "A model of the settings cannot be used: Models of openai need a key: set OPENAI_API_KEY, or OPENAI_BASE_URL"
        " for a server."
    )


async def test_control_with_its_key_it_starts_and_the_model_is_built() -> None:
    made = container(chat_model="openai:gpt-5-mini", OPENAI_API_KEY="k")
    server, answer = await started(made)
    assert answer["type"] == "lifespan.startup.complete"
    assert made.parts.models._models.holds("openai:gpt-5-mini")
    await server.stop()


@pytest.mark.parametrize("fails", [True, False])
async def test_a_worker_starts_all_the_same_and_says_so(monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    async def prepare_models() -> None:
        if fails:
            raise InvalidInputError("Models of openai need a key.")

    made: Any = SimpleNamespace(parts=SimpleNamespace(models=SimpleNamespace(prepare=prepare_models)))

    async def build_container(*_: object, **__: object) -> Any:
        return made

    monkeypatch.setattr("app.bootstrap.build_container", build_container)
    with capture_logs() as logs:
        assert await runtime.build() is made
    said = [line["detail"] for line in logs if line["event"] == "worker.model_unavailable"]
    assert said == (["Models of openai need a key."] if fails else [])
