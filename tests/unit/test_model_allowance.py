"""The models that may be named, and how they are built: off the event loop, once, and never with an unknown error."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.bootstrap import make_models
from app.core.model.errors import InvalidInputError, ModelNotAllowedError
from app.core.model.policies.policy import MODEL_FIELDS, CompactionPolicy
from app.devserver.errors import CannotStartError
from app.devserver.preflight import check_models
from app.providers import other_providers
from app.providers.built_models import BuiltModels
from app.providers.keys import Keys
from app.providers.offline import OfflineChat
from app.providers.registry import ModelRegistry
from app.settings import DEFAULT_GEMINI_MODEL, Settings
from tests.fakes import FakeClock

PATIENCE = 30.0
AMBIENT = ("deepseek:x", "google-cloud:x", "azure:x", "together:x/y", "ollama:x", "gateway/openai:x")


def settings(**given: Any) -> Settings:
    return Settings(_env_file=None, **given)


class TestTheList:
    def test_without_a_key_it_is_the_offline_model(self) -> None:
        assert settings().allowed_models == {"offline"}

    def test_with_a_key_it_is_the_models_that_settings_name(self) -> None:
        given = settings(GOOGLE_API_KEY="k", chat_model="openai:a", compaction_model="openai:b")
        assert given.allowed_models == {"openai:a", "openai:b", DEFAULT_GEMINI_MODEL, "offline"}

    def test_a_list_stands_beside_the_models_in_use(self) -> None:
        given = settings(chat_model="openai:a", compaction_model="openai:b", models="openai:c, openai:d")
        assert given.allowed_models == {"openai:a", "openai:b", "openai:c", "openai:d"}

    @pytest.mark.parametrize(
        "name", ["google:gemini-2.5-pro", "openai-responses:gpt-5", "OFFLINE", "offline ", "x" * 200]
    )
    @pytest.mark.case("65-refused")
    async def test_any_other_name_is_refused_before_anything_is_built(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ModelRegistry, "_opened_models", pytest.fail)
        models = make_models(settings(OPENAI_API_KEY="k"))
        for ask in (models.chat, models.summarizer):
            with pytest.raises(ModelNotAllowedError) as caught:
                ask(name)
            assert caught.value.errors[0].field == "model"
            assert caught.value.extra == {"allowed": ["offline"]}
            assert "THROUGHLINE_MODELS" in caught.value.detail
        with pytest.raises(ModelNotAllowedError):
            await models.prepare(name)
        assert not models.allows(name)

    async def test_control_a_name_on_the_list_is_built(self) -> None:
        models = make_models(settings(GOOGLE_API_KEY="k", models=["google:gemini-2.5-pro"]))
        await models.prepare("google:gemini-2.5-pro")
        assert models.chat("google:gemini-2.5-pro").profile.name == "google:gemini-2.5-pro"
        with pytest.raises(ModelNotAllowedError):
            models.chat("offline")

    def test_an_error_names_a_few_and_counts_the_rest(self) -> None:
        models = ModelRegistry(allowed=[f"openai:model-{number:02}" for number in range(20)])
        with pytest.raises(ModelNotAllowedError, match="openai:model-06 and 13 more") as caught:
            models.chat("nobody:x")
        assert len(caught.value.extra["allowed"]) == 21

    def test_a_listed_model_that_cannot_be_built_stops_the_start(self) -> None:
        with pytest.raises(CannotStartError, match=r"THROUGHLINE_MODELS \(openai:c\): Models of openai need a key"):
            check_models(settings(models="openai:c"))

    def test_every_field_of_a_policy_that_names_a_model_is_known(self) -> None:
        named = {name for name in CompactionPolicy.model_fields if name.endswith("_model")}
        assert named == set(MODEL_FIELDS)
        policy = CompactionPolicy.model_validate(dict.fromkeys(named, "a:b"))
        assert policy.models == dict.fromkeys(named, "a:b")
        assert CompactionPolicy().models == {}


class TestAmbientCredentials:
    @pytest.fixture(autouse=True)
    def credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set everything that these providers look for."""
        for name in ("DEEPSEEK", "PYDANTIC_AI_GATEWAY", "OPENAI", "AZURE_OPENAI", "TOGETHER"):
            monkeypatch.setenv(f"{name}_API_KEY", "k")
        monkeypatch.setenv("OLLAMA_BASE_URL", "http://localhost:1/v1")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://localhost:1")
        monkeypatch.setenv("OPENAI_API_VERSION", "1")

    @pytest.mark.parametrize("name", AMBIENT)
    def test_they_are_not_even_looked_for_unless_a_setting_says_so(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(other_providers, "infer_provider", pytest.fail)
        with pytest.raises(InvalidInputError, match="THROUGHLINE_AMBIENT_CREDENTIALS=true"):
            ModelRegistry().chat(name)

    def test_the_other_name_of_openai_signs_in_with_the_key_of_the_settings(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(other_providers, "infer_provider", pytest.fail)
        with pytest.raises(InvalidInputError, match="need a key: set OPENAI_API_KEY, or OPENAI_BASE_URL"):
            ModelRegistry().chat("openai-chat:gpt-5-mini")
        made = [
            ModelRegistry(keys=Keys(openai_api_key="k", openai_base_url="http://127.0.0.1:1/v1")).chat(
                f"{kind}:gpt-5-mini"
            )
            for kind in ("openai", "openai-chat")
        ]
        one, other = (chat.profile for chat in made)
        assert replace(other, name=one.name) == one

    @pytest.mark.parametrize("name", ["deepseek:x", "together:x/y", "azure:x"])
    def test_control_with_the_setting_they_are_used(self, name: str) -> None:
        models = make_models(settings(models=[name], ambient_credentials=True))
        assert models.chat(name).profile.name == name


class SlowLibrary:
    """A provider's library that waits for a server and then fails, as one that looks for a machine's identity does.

    The server answers once ``answered`` is set; the library waits no longer than this many seconds.
    """

    def __init__(self, error: Exception, seconds: float = 0.0) -> None:
        self.error, self.seconds, self.calls = error, seconds, 0
        self.answered = threading.Event()
        self.was_answered = False

    def __call__(self, _: str) -> Any:
        self.calls += 1
        self.was_answered = self.answered.wait(self.seconds)
        raise self.error


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SlowLibrary]:
    def make(error: Exception, seconds: float = 0.0) -> SlowLibrary:
        made = SlowLibrary(error, seconds)
        monkeypatch.setattr(other_providers, "infer_provider", made)
        return made

    return make


class DefaultCredentialsError(Exception):
    """Like the error of google.auth: a class that our code does not know."""


class TestALibraryThatFails:
    @pytest.mark.parametrize(
        "error", [DefaultCredentialsError("no file at /home/me/key.json"), TypeError("x"), KeyError("x"), OSError("x")]
    )
    @pytest.mark.case("65-library")
    async def test_it_is_an_error_of_ours_without_its_words(
        self, error: Exception, library: Callable[..., SlowLibrary]
    ) -> None:
        library(error)
        models = ModelRegistry(keys=Keys(ambient=True))
        with pytest.raises(InvalidInputError) as caught:
            await models.prepare("deepseek:x")
        assert caught.value.errors[0].field == "model"
        assert f"failed with {type(error).__name__}" in caught.value.detail
        assert "key.json" not in caught.value.detail

    async def test_what_reads_the_new_model_fails_the_same_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise DefaultCredentialsError

        monkeypatch.setattr("app.providers.built_models.profile_of", broken)
        with pytest.raises(InvalidInputError, match="failed with DefaultCredentialsError"):
            await ModelRegistry(keys=Keys(openai_api_key="k")).prepare("openai:x")

    @pytest.mark.parametrize(
        ("words", "package"),
        [
            ("Please install the `anthropic` package to use the Anthropic provider", "the package anthropic"),
            ("Please install `anthropic` to use the Anthropic model", "the package anthropic"),
            ("Using SOCKS proxy, but the 'socksio' package is not installed.", "the package socksio"),
            ("cannot import name 'x' from 'y' (/home/me/y.py)", "a package"),
        ],
    )
    async def test_a_package_that_is_missing_is_named(
        self, words: str, package: str, library: Callable[..., SlowLibrary]
    ) -> None:
        library(ImportError(words))
        with pytest.raises(InvalidInputError) as caught:
            await ModelRegistry(keys=Keys(ambient=True)).prepare("deepseek:x")
        assert caught.value.detail == (
            f"Models of deepseek need {package}, which is not installed: add it to this environment with pip."
        )

    async def test_what_is_missing_is_named_by_the_command_that_installs_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The library says "install `mistral`", which is another project's package: its own is `mistralai`."""
        monkeypatch.setitem(sys.modules, "mistralai", None)
        monkeypatch.setitem(sys.modules, "mistralai.client", None)
        with pytest.raises(InvalidInputError) as caught:
            await ModelRegistry(keys=Keys(ambient=True)).prepare("mistral:x")
        assert caught.value.detail == (
            'Models of mistral need packages that are not installed: pip install "pydantic-ai-slim[mistral]" adds them.'
        )

    async def test_a_socks_proxy_of_the_environment_is_no_matter_of_credentials(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "socksio", None)
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
        with pytest.raises(InvalidInputError, match="the package socksio, which is not installed"):
            await ModelRegistry(keys=Keys(openai_api_key="k")).prepare("openai:x")

    async def test_control_without_the_proxy_the_model_is_built(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "socksio", None)
        await ModelRegistry(keys=Keys(openai_api_key="k")).prepare("openai:x")

    async def test_a_refusal_is_remembered_for_a_while(self, library: Callable[..., SlowLibrary]) -> None:
        clock, slow = FakeClock(), library(DefaultCredentialsError())
        models = ModelRegistry(keys=Keys(ambient=True), monotonic=clock.monotonic)
        said = set()
        for _ in range(5):
            with pytest.raises(InvalidInputError) as caught:
                await models.prepare("deepseek:x")
            said.add(caught.value.detail)
            with pytest.raises(InvalidInputError):
                models.chat("deepseek:x")
        assert (slow.calls, len(said)) == (1, 1)
        await clock.advance(60)
        with pytest.raises(InvalidInputError):
            await models.prepare("deepseek:x")
        assert slow.calls == 2

    async def test_refusals_do_not_pile_up(self, library: Callable[..., SlowLibrary]) -> None:
        library(DefaultCredentialsError())
        models = ModelRegistry(keys=Keys(ambient=True))
        for number in range(200):
            with pytest.raises(InvalidInputError):
                models.chat(f"deepseek:{number}")
        assert models._models is not None
        assert len(models._models._refusals) <= 64


class TestOffTheLoop:
    @pytest.mark.case("65-library")
    async def test_a_build_that_waits_holds_nobody_up_and_is_one_build(
        self, library: Callable[..., SlowLibrary]
    ) -> None:
        slow = library(DefaultCredentialsError(), PATIENCE)
        models = ModelRegistry(keys=Keys(ambient=True))
        asked = [asyncio.create_task(models.prepare("deepseek:x")) for _ in range(20)]
        async with asyncio.timeout(PATIENCE):
            while not slow.calls:  # noqa: ASYNC110 - the library's thread tells nobody
                await asyncio.sleep(0.01)
        slow.answered.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(item, InvalidInputError) for item in found)
        assert slow.calls == 1
        assert slow.was_answered, "the loop went on meanwhile"

    @pytest.mark.control("65-library")
    async def test_control_on_the_loop_it_would(self, library: Callable[..., SlowLibrary]) -> None:
        slow = library(DefaultCredentialsError(), 0.1)
        models = ModelRegistry(keys=Keys(ambient=True))
        asyncio.get_running_loop().call_soon(slow.answered.set)
        with pytest.raises(InvalidInputError):
            models.chat("deepseek:x")
        assert not slow.was_answered

    async def test_a_request_that_leaves_does_not_end_the_build(self, library: Callable[..., SlowLibrary]) -> None:
        slow = library(DefaultCredentialsError(), PATIENCE)
        models = ModelRegistry(keys=Keys(ambient=True))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(models.prepare("deepseek:x"), 0.05)
        again = asyncio.create_task(models.prepare("deepseek:x"))
        await asyncio.sleep(0)
        slow.answered.set()
        with pytest.raises(InvalidInputError):
            await again
        assert slow.calls == 1

    async def test_what_was_prepared_is_only_looked_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        models = make_models(settings(OPENAI_API_KEY="k", chat_model="openai:a", compaction_model="openai:b"))
        await models.prepare()
        monkeypatch.setattr(BuiltModels, "_build", pytest.fail)
        await models.prepare()
        await models.prepare("openai:a")
        assert models.chat().profile.name == "openai:a"
        assert models.summarizer().profile.name == "openai:b"

    async def test_the_offline_model_needs_no_preparing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ModelRegistry, "_opened_models", pytest.fail)
        models = make_models(settings())
        await models.prepare()
        await models.prepare("offline")
        assert isinstance(models.chat(), OfflineChat)
