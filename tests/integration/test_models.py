"""The registry: names, keys, limits; any OpenAI-compatible server; a context as providers take it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args
from uuid import UUID, uuid5

import pytest
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import (
    BinaryContent,
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.core.model.conversation import Message, Role
from app.core.model.errors import InvalidInputError, ModelUnavailableError
from app.core.model.model_io import (
    CallSettings,
    ChatRequest,
    ContextMessage,
    ModelProfile,
    ReasoningDelta,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    ToolCall,
)
from app.core.model.schemas.session import SESSION
from app.core.text.parts import Part
from app.providers import other_providers
from app.providers.built_models import BuiltModels, CircuitSettings
from app.providers.chat_completions import CompletionsModel
from app.providers.failures import unavailable
from app.providers.gemini import takes_media as gemini_takes
from app.providers.keys import Keys
from app.providers.loop import ProviderLoop
from app.providers.messages import to_provider
from app.providers.offline import OfflineChat, OfflineSummarizer
from app.providers.other_providers import takes_media as others_take
from app.providers.profiles import GEMINI_INPUT_LIMIT
from app.providers.provider_models import ProviderModel, ProviderSummarizer
from app.providers.registry import ModelRegistry
from app.providers.replies import finish_of_stream
from app.settings import DEFAULT_GEMINI_MODEL
from app.usecases.ports import Models
from tests.fakes import FakeClock
from tests.gemini_server import serving
from tests.servers import ROOT

NAMESPACE = UUID("01900000-0000-7000-8000-000000000000")
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def talk(*lines: tuple[str, str]) -> tuple[Message, ...]:
    """Messages from (role, content)."""
    assert all(role in get_args(Role) for role, _ in lines)
    return tuple(
        Message(
            id=uuid5(NAMESPACE, f"{seq}"),
            conversation_id=NAMESPACE,
            seq=seq,
            role=cast("Role", role),
            content=content,
            token_count=len(content) // 4,
            created_at=START + timedelta(minutes=seq),
        )
        for seq, (role, content) in enumerate(lines, 1)
    )


def said(events: Sequence[StepEvent]) -> str:
    """The reply in a list of events."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


class TestNames:
    def test_offline_is_the_default_and_needs_nothing(self) -> None:
        registry: Models = ModelRegistry()
        assert isinstance(registry.chat(), OfflineChat)
        assert isinstance(registry.summarizer("offline"), OfflineSummarizer)

    def test_the_configured_name_is_used_when_none_is_given(self) -> None:
        registry = ModelRegistry(chat="google:gemini-2.5-flash", compaction="offline", keys=Keys(google_api_key="k"))
        assert registry.chat().profile.name == "google:gemini-2.5-flash"
        assert registry.summarizer().profile.name == "offline"
        assert registry.summarizer("google:gemini-2.5-pro").profile.name == "google:gemini-2.5-pro"

    def test_a_model_is_built_once_per_name_and_a_client_once_per_provider(self) -> None:
        registry = ModelRegistry(keys=Keys(google_api_key="k"))
        first, again = registry.chat("google:gemini-2.5-flash"), registry.summarizer("google:gemini-2.5-flash")
        other = registry.chat("google:gemini-2.5-pro")
        assert first.inner.provider_model is again.inner.provider_model  # type: ignore[attr-defined]  # white box
        assert first.inner.provider_model.model.client is other.inner.provider_model.model.client  # type: ignore[attr-defined]  # the same

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
            ("openai:gpt-5-mini", "OPENAI_API_KEY"),
            ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
            ("anthropic:claude-sonnet-4-5", "anthropic"),
            ("nobody:nothing", "no model provider 'nobody'"),
            (
                "litellm:gpt-5-mini",
                "'openai:model', with its address, such as http://localhost:4000/v1, in OPENAI_BASE_URL",
            ),
            ("lmstudio:qwen3", "OPENAI_BASE_URL"),
            ("gemini-2.5-flash", "provider:model"),
            ("test", "provider:model"),
            ("", "provider:model"),
            ("google:", "provider:model"),
            ("google:../../files", "provider:model"),
            ("google:a?key=b", "provider:model"),
            ("google:a b", "provider:model"),
            ("google:" + "a" * 1_000, "provider:model"),
        ],
    )
    def test_a_name_that_cannot_be_built_says_what_to_do(
        self, name: str, says: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for variable in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.delenv(variable, raising=False)
        registry = ModelRegistry(chat=name or "x", compaction=name or "x", keys=Keys(ambient=True))
        for build in (registry.chat, registry.summarizer):
            with pytest.raises(InvalidInputError) as caught:
                build()
            assert says in caught.value.detail
            assert caught.value.errors[0].field == "model"

    def test_a_key_of_the_environment_serves_providers_that_settings_do_not_know(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
        registry = ModelRegistry(keys=Keys(ambient=True))
        assert registry.chat("deepseek:deepseek-chat").profile.name == "deepseek:deepseek-chat"

    def test_other_providers_with_openais_interface_are_read_alike(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
        monkeypatch.setenv("OPENROUTER_API_KEY", "k")
        monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")
        models = BuiltModels(
            keys=Keys(ambient=True),
            circuit=CircuitSettings(failures=1, pause=1, monotonic=time.monotonic),
            chat_timeout=1,
        )
        assert type(models.build("deepseek:deepseek-chat").model) is CompletionsModel
        assert isinstance(models.build("openrouter:a/b").model, CompletionsModel)
        local, cloud = (models.build(f"ollama:{name}").model for name in ("qwen3", "gpt-oss:120b-cloud"))
        assert type(local) is type(cloud) is CompletionsModel
        assert [model.profile["supports_json_schema_output"] for model in (local, cloud)] == [True, False]

    @pytest.mark.parametrize(
        "name", ["openrouter:~anthropic/claude-sonnet-latest", "openai:@cf/meta/llama-3.1-8b-instruct"]
    )
    def test_names_that_begin_with_a_sign_are_taken(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENROUTER_API_KEY", "k")
        keys = Keys(ambient=True, openai_base_url="http://127.0.0.1:9/v1")
        assert ModelRegistry(keys=keys).chat(name).profile.name == name

    @pytest.mark.parametrize("given", [None, "3"])
    def test_clients_of_aws_send_a_request_once_unless_the_operator_says_how_often(
        self, given: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They would repeat it by themselves, even when nobody waits for it any more."""
        monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
        if given:
            monkeypatch.setenv("AWS_MAX_ATTEMPTS", given)
        seen: list[str | None] = []

        def infer(_kind: str) -> None:
            seen.append(os.environ.get("AWS_MAX_ATTEMPTS"))
            raise UserError("You must provide a `region_name` or a boto3 client for Bedrock Runtime.")

        monkeypatch.setattr(other_providers, "infer_provider", infer)
        monkeypatch.setattr(other_providers, "infer_provider_class", lambda _: None)
        with pytest.raises(InvalidInputError, match="need a key: set AWS_DEFAULT_REGION, and credentials"):
            ModelRegistry(keys=Keys(ambient=True)).chat("bedrock:amazon.nova-lite-v1:0")
        assert (seen, os.environ.get("AWS_MAX_ATTEMPTS")) == ([given or "1"], given)

    def test_keys_show_nowhere(self) -> None:
        registry = ModelRegistry(keys=Keys(google_api_key="AIza-secret", openai_api_key="sk-secret"))
        registry.chat("google:gemini-2.5-flash")
        assert "secret" not in f"{registry!r} {vars(registry)!r}"

    def test_many_names_do_not_pile_up(self) -> None:
        registry = ModelRegistry(keys=Keys(google_api_key="k"))
        for number in range(200):
            registry.chat(f"google:gemini-{number}")
        assert registry._models is not None
        assert len(registry._models._built) <= 64

    async def test_close_is_repeatable_and_a_closed_registry_opens_again(self) -> None:
        registry = ModelRegistry(keys=Keys(google_api_key="k"))
        registry.chat("google:gemini-2.5-flash")
        await registry.close()
        await registry.close()
        assert registry.chat("google:gemini-2.5-flash").profile.input_limit

    @pytest.mark.long
    def test_offline_loads_no_provider_library(self) -> None:
        code = (
            "import sys; from app.providers.registry import Keys, ModelRegistry;"
            "r = ModelRegistry(keys=Keys(google_api_key='k'));"
            "r.chat(); r.summarizer(); print([m for m in sys.modules if m.startswith(('pydantic_ai', 'google.genai'))])"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestEnds:
    @pytest.mark.parametrize(("finish", "ends"), [("stop", "stop"), ("length", "length"), (None, "other")])
    def test_only_a_server_with_chat_completions_needs_a_word_of_its_own(
        self, finish: FinishReason | None, ends: str
    ) -> None:
        """Of xAI's word for the end the library keeps only what it means: each reply counted as broken off."""
        response = ModelResponse(parts=[TextPart("Good day.")], finish_reason=finish)
        assert finish_of_stream(FunctionModel(stream_function=lambda *_: iter(())), response) == ends  # type: ignore[arg-type]
        local = OpenAIChatModel("own", provider=OpenAICompatibleProvider("local", base_url="http://127.0.0.1:9"))
        assert finish_of_stream(local, response) == ("other" if ends == "stop" else ends)


class TestLimits:
    def test_the_default_model_is_known_to_the_bundled_data(self) -> None:
        name = DEFAULT_GEMINI_MODEL.removeprefix("google:")
        model = GoogleModel(name, provider=GoogleProvider(api_key="k"))
        assert model.context_window == GEMINI_INPUT_LIMIT

    def test_the_offline_model_has_the_limit_of_the_default_gemini_model_and_small_chunks(self) -> None:
        registry = ModelRegistry(keys=Keys(google_api_key="k"))
        offline, gemini = registry.chat("offline").profile, registry.chat(DEFAULT_GEMINI_MODEL).profile
        assert offline.input_limit == gemini.input_limit
        assert (offline.chunk_tokens, gemini.chunk_tokens) == (8_000, None)
        assert gemini.output_limit == 65_536

    @pytest.mark.parametrize(
        ("name", "input_limit", "output_limit"),
        [("google:gemini-of-tomorrow", 1_000_000, 65_536), ("openai:own-llama", 128_000, 8_192)],
    )
    def test_unknown_models_get_a_careful_guess(self, name: str, input_limit: int, output_limit: int) -> None:
        profile = ModelRegistry(keys=Keys(google_api_key="k", openai_api_key="k")).chat(name).profile
        assert (profile.input_limit, profile.output_limit) == (input_limit, output_limit)

    @pytest.mark.parametrize(
        ("name", "tokens", "usd"),
        [
            ("openai:gpt-4", 50_000, 1.50),  # these are the figures of the Sessions Pattern
            ("openai:gpt-4", 8_000, 0.24),
            ("google:gemini-2.5-pro", 100_000, 0.125),
            ("google:gemini-2.5-pro", 300_000, 0.75),  # a longer context has another price
            ("openai:not-a-model", 50_000, None),
            ("offline", 50_000, None),
        ],
    )
    def test_what_reading_a_context_costs(self, name: str, tokens: int, usd: float | None) -> None:
        models = ModelRegistry(keys=Keys(google_api_key="k", openai_api_key="k"))
        cost = models.chat(name).profile.cost(tokens, 0)
        assert cost == (None if usd is None else pytest.approx(usd))

    def test_the_operators_word_beats_every_table(self) -> None:
        registry = ModelRegistry(keys=Keys(google_api_key="k", openai_api_key="k"), input_limit=4_000)
        for name in ("google:gemini-2.5-flash", "openai:own-llama"):
            profile = registry.summarizer(name).profile
            assert (profile.input_limit, profile.output_limit) == (4_000, 4_000)


@dataclass
class OpenAIServer:
    """The few routes of chat completions that a local server has."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    reasons: bool = True
    """Whether a stream says why it ended."""
    reason: str = "stop"
    """Why a stream ended."""
    streams: bool = True
    """Whether the server streams where it is asked to."""
    media_type: str = "text/event-stream"
    """The type under which the server streams."""
    deltas: Sequence[dict[str, Any]] = ({"role": "assistant", "content": "Good "}, {"content": "day."})
    """The pieces of the answer."""
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 12, "completion_tokens": 3})
    beside: dict[str, Any] = field(default_factory=dict)
    """Fields of an answer that is not streamed, in place of its own."""
    reports_often: bool = False
    """Whether each chunk of a stream has the usage too."""
    error: dict[str, Any] = field(default_factory=lambda: {"message": "busy", "type": "server_error"})
    headers: dict[str, str] = field(default_factory=dict)
    refused_format: str | None = None
    """The type of ``response_format`` that is answered with the error."""
    unknown_fields: Sequence[str] = ()
    """Fields that are answered with an error, as by servers that check them."""
    url: str = ""

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self.complete, methods=["POST"])])

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        if self.status != 200:
            return JSONResponse({"error": self.error}, status_code=self.status, headers=self.headers)
        if self.refused_format and self.refused_format in str(body.get("response_format")):
            return JSONResponse({"error": self.error}, status_code=400)
        if unknown := [name for name in self.unknown_fields if name in body]:
            detail = [{"type": "extra_forbidden", "loc": ["body", unknown[0]], "msg": "Extra inputs are not permitted"}]
            return JSONResponse({"object": "error", "message": {"detail": detail}}, status_code=422)
        usage = {"total_tokens": 15, **self.usage} if isinstance(self.usage, dict) else self.usage
        common = {"id": "1", "created": 1, "model": body["model"]}
        if not (body.get("stream") and self.streams):
            message = {"role": "assistant", "content": '{"logos": []}'}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
            return JSONResponse({**answer, **self.beside})
        chunks: list[dict[str, Any]] = [
            *({"choices": [{"index": 0, "delta": delta}]} for delta in self.deltas),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": self.reason if self.reasons else None}]},
            {"choices": [], "usage": usage},
        ]
        often = {"usage": usage} if self.reports_often else {}
        lines = [json.dumps({**common, "object": "chat.completion.chunk", **often, **chunk}) for chunk in chunks]
        text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
        return PlainTextResponse(text, media_type=self.media_type)


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    server = OpenAIServer()
    with serving(server.app()) as url:
        server.url = f"{url}/v1"
        yield server


async def steps_of(openai: OpenAIServer) -> list[StepEvent]:
    """What a model of this server answers."""
    registry = ModelRegistry(chat="openai:own-llama", keys=Keys(openai_base_url=openai.url))
    request = ChatRequest(messages=(ContextMessage(role="user", content="Hello"),), reasoning="shown")
    events = [event async for event in registry.chat().step(request)]
    await registry.close()
    return events


class TestOpenAICompatible:
    async def test_a_server_without_a_key_chats(self, openai: OpenAIServer) -> None:
        registry = ModelRegistry(chat="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        context = (
            ContextMessage(role="system", content="Be kind."),
            ContextMessage(role="user", content="Hello"),
            ContextMessage(role="system", content="Be brief."),
        )
        events = [event async for event in registry.chat().step(ChatRequest(messages=context))]
        await registry.close()

        assert said(events) == "Good day."
        finish = events[-1]
        assert isinstance(finish, StepFinish)
        assert (finish.reason, finish.model) == ("stop", "openai:own-llama")
        assert (finish.usage.input_tokens, finish.usage.output_tokens) == (12, 3)
        assert finish.usage.cost_usd is None
        (body,) = openai.requests
        assert [message["role"] for message in body["messages"]] == ["system", "user", "system"]

    async def test_words_whose_end_the_server_does_not_tell_may_be_cut_off(self, openai: OpenAIServer) -> None:
        openai.reasons = False
        events = await steps_of(openai)
        finish = events[-1]
        assert isinstance(finish, StepFinish)
        assert (said(events), finish.reason) == ("Good day.", "other")

    @pytest.mark.parametrize(
        ("reason", "finish"), [("eos", "stop"), ("eos_token", "stop"), ("abort", "other")], ids=str
    )
    async def test_an_end_by_the_model_itself_has_several_names(
        self, openai: OpenAIServer, reason: str, finish: str
    ) -> None:
        """Control: a word that is known to nobody."""
        openai.reason = reason
        end = (await steps_of(openai))[-1]
        assert isinstance(end, StepFinish)
        assert end.reason == finish

    @pytest.mark.parametrize(
        ("pieces", "reply", "thoughts"),
        [
            (["<think>Hm", "m.</think>Good ", "day."], "Good day.", "Hmm."),
            (["<think>Hmm.</think>Good day."], "Good day.", "Hmm."),
            (["\n<th", "ink>Hmm.</", "think>Good day."], "Good day.", "Hmm."),
            (["<think>", "Hmm. <", "b", "</think>", "Good day."], "Good day.", "Hmm. <b"),
            (["<think>Hmm."], "", "Hmm."),
            (["<thin", " ice"], "<thin ice", ""),
            (["  ", "<t"], "  <t", ""),
            (["The tag is <think>x</think>."], "The tag is <think>x</think>.", ""),
        ],
    )
    async def test_thoughts_are_told_from_the_reply_wherever_their_tags_are(
        self, openai: OpenAIServer, pieces: Sequence[str], reply: str, thoughts: str
    ) -> None:
        """LiteLLM puts each tag into one piece with the words beside it. Control: what only looks like a tag."""
        openai.deltas = [{"content": piece} for piece in pieces]
        events = await steps_of(openai)
        shown = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        assert (said(events), shown) == (reply, thoughts)

    @pytest.mark.parametrize("arguments", ['{"city": "Rome"}', {"city": "Rome"}], ids=["text", "object"])
    async def test_a_server_that_does_not_stream_is_read_too(self, openai: OpenAIServer, arguments: Any) -> None:
        call = {"function": {"name": "weather", "arguments": arguments}}
        message = {"content": "<think>Hm.</think>Good day.", "tool_calls": [call, call]}
        openai.streams, openai.beside = False, {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
        events = await steps_of(openai)
        *calls, finish = events[-3:]
        assert said(events) == "Good day."
        assert [(one.name, one.arguments) for one in calls if isinstance(one, ToolCall)] == [
            ("weather", {"city": "Rome"})
        ] * 2
        assert isinstance(finish, StepFinish)
        assert (finish.reason, finish.usage.input_tokens) == ("tool_call", 12)

    async def test_control_a_stream_under_the_type_of_a_whole_answer_is_read(self, openai: OpenAIServer) -> None:
        openai.media_type = "application/json"
        assert said(await steps_of(openai)) == "Good day."

    @pytest.mark.parametrize(
        ("code", "reason"), [(429, "rate_limited"), ("402", "quota_exceeded"), (None, "unreadable")], ids=str
    )
    async def test_an_error_in_place_of_an_answer_is_told(
        self, openai: OpenAIServer, code: int | str | None, reason: str
    ) -> None:
        """OpenRouter reports what went wrong later under the status of an answer. Control: an error without a code."""
        openai.streams, openai.beside = False, {"choices": None, "error": {"code": code, "message": "No."}}
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        with pytest.raises(ModelUnavailableError, match=reason):
            await steps_of(openai)
        with pytest.raises(ModelUnavailableError, match=reason):
            await registry.summarizer().ask(SummaryRequest(schema=SESSION, messages=talk(("user", "Hello"))))
        await registry.close()

    @pytest.mark.parametrize(
        ("arguments", "reasons", "reason"),
        [
            ('{"city": "Ro', False, "other"),
            ('{"city": "Rome"}', False, "tool_call"),  # control: some servers never give a reason
            ("Rome", True, "tool_call"),  # control: the model ended it itself, so it is as the model wanted it
        ],
    )
    async def test_half_a_call_is_none(
        self, openai: OpenAIServer, *, arguments: str, reasons: bool, reason: str
    ) -> None:
        call = {"index": 0, "id": "1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
        openai.deltas, openai.reasons = ({"role": "assistant", "tool_calls": [call]},), reasons
        finish = (await steps_of(openai))[-1]
        assert isinstance(finish, StepFinish)
        assert finish.reason == reason

    async def test_a_usage_that_is_reported_often_counts_once(self, openai: OpenAIServer) -> None:
        openai.reports_often = True
        finish = (await steps_of(openai))[-1]
        assert isinstance(finish, StepFinish)
        assert (finish.usage.input_tokens, finish.usage.output_tokens) == (12, 3)

    @pytest.mark.daily(2)
    @pytest.mark.parametrize(
        ("usage", "told"),
        [
            ({"prompt_tokens": 10**30}, (0, 0, 0)),
            ({"completion_tokens": 2.5}, (0, 0, 0)),
            ({"prompt_tokens": -12}, (0, 0, 0)),
            (
                {"prompt_tokens_details": {"cached_tokens": 99}, "prompt_tokens": 12, "completion_tokens": 3},
                (12, 3, 12),
            ),
            ({"prompt_tokens_details": {"cached_tokens": 8}}, (12, 3, 8)),
        ],
        ids=["beyond-any-window", "half-a-token", "negative", "more-cached-than-read", "control"],
    )
    async def test_counts_that_cannot_be_are_none(
        self, openai: OpenAIServer, usage: dict[str, Any], told: tuple[int, int, int]
    ) -> None:
        openai.usage |= usage
        finish = (await steps_of(openai))[-1]
        assert isinstance(finish, StepFinish)
        assert (finish.usage.input_tokens, finish.usage.output_tokens, finish.usage.cached_tokens) == told

    @pytest.mark.parametrize(
        ("usage", "told"),
        [
            ([{"prompt_tokens": 12}], (0, 0)),
            ("12 tokens", (0, 0)),
            ({"prompt_tokens": 12, "completion_tokens": 3, "completion_tokens_details": "none"}, (12, 3)),
            ({"prompt_tokens": "12", "completion_tokens": "3"}, (12, 3)),
        ],
        ids=["list", "text", "strange-details", "numbers-as-texts"],
    )
    async def test_a_usage_that_cannot_be_read_costs_no_word(
        self, openai: OpenAIServer, usage: Any, told: tuple[int, int]
    ) -> None:
        openai.usage = usage
        events = await steps_of(openai)
        finish = events[-1]
        assert isinstance(finish, StepFinish)
        assert (said(events), finish.reason) == ("Good day.", "stop")
        assert (finish.usage.input_tokens, finish.usage.output_tokens) == told

    @pytest.mark.parametrize(
        ("pieces", "cities"),
        [
            (
                [("a", "weather", '{"city": "Rome"}'), ("b", "weather", '{"city": '), ("c", None, '"Oslo"}')],
                "Rome Oslo",
            ),
            ([("", "weather", '{"city": "Rome"}'), ("", "weather", '{"city": "Oslo"}')], "Rome Oslo"),
            ([("a", "weather", '{"city": '), ("b", None, '"Rome"}')], "Rome"),
            ([("a", "weather", '{"city": '), ("a", "", '"Rome"}')], "Rome"),
            ([("a", "weather", '{"city": '), ("a", "weather", '"Rome"'), ("", "weather", "}")], "Rome"),
            (
                [("", "weather", '{"city": '), ("", "weather", '"Rome"}'), ("", "weather", '{"city": "Oslo"}')],
                "Rome Oslo",
            ),
            ([("a", "weather", '{"city": '), ("b", "weather", '"Rome"}')], "Rome"),
            ([("a", "wea", ""), ("a", "ther", '{"city": "Rome"}')], "Rome"),
        ],
        ids=[
            "two-calls",
            "two-calls-without-ids",
            "control-an-id-for-each-piece",
            "control-one-id",
            "a-name-for-each-piece",
            "a-name-for-each-piece-without-ids",
            "a-name-and-an-id-for-each-piece",
            "control-a-name-in-pieces",
        ],
    )
    async def test_calls_under_one_index_are_told_apart_by_their_ids(
        self, openai: OpenAIServer, pieces: Sequence[tuple[str, str | None, str]], cities: str
    ) -> None:
        """Some servers give each call of an answer the index 0."""
        openai.deltas = [
            {"tool_calls": [{"index": 0, "id": id_, "function": {"name": name, "arguments": text}}]}
            for id_, name, text in pieces
        ]
        calls = [event for event in await steps_of(openai) if isinstance(event, ToolCall)]
        assert [(call.name, call.arguments) for call in calls] == [
            ("weather", {"city": city}) for city in cities.split()
        ]

    async def test_what_came_beside_a_call_goes_back_with_it(self, openai: OpenAIServer) -> None:
        """Gemini behind OpenAI's chat completions refuses its own call without its signature."""
        signed = {"google": {"thought_signature": "c2lnbmVk"}}
        call = {"index": 0, "id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        openai.deltas = ({"tool_calls": [{**call, "extra_content": signed}]},)
        (made,) = [event for event in await steps_of(openai) if isinstance(event, ToolCall)]
        part = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}, "details": dict(made.details)}
        foreign = {**part, "id": "c2", "details": {**made.details, "provider": "google"}}
        registry = ModelRegistry(chat="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        context = (
            ContextMessage(role="user", content="How warm is it?"),
            ContextMessage(role="assistant", content="", parts=(part, foreign)),
        )
        _ = [event async for event in registry.chat().step(ChatRequest(messages=context))]
        await registry.close()
        sent, foreign_sent = openai.requests[-1]["messages"][1]["tool_calls"]
        assert sent["extra_content"] == signed
        assert "extra_content" not in foreign_sent

    @pytest.mark.parametrize(
        ("pieces", "whole"),
        [
            (("a\ud83d", "\ude00b"), "a😀b"),
            (("a\r", "\nb\r"), "a\nb\n"),
            (("a\ud83d", "b\ud83d"), "a\ufffdb\ufffd"),  # control: halves that are never completed
        ],
        ids=["letter", "line-break", "halves"],
    )
    async def test_what_two_pieces_share_stays_one(
        self, openai: OpenAIServer, pieces: Sequence[str], whole: str
    ) -> None:
        openai.deltas = [{"content": piece} for piece in pieces]
        assert said(await steps_of(openai)) == whole

    async def test_a_summary_asks_for_the_json_schema(self, openai: OpenAIServer) -> None:
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        proposal = await registry.summarizer().ask(request)
        await registry.close()

        assert (proposal.text, proposal.finish) == ('{"logos": []}', "stop")
        wanted = openai.requests[0]["response_format"]
        assert wanted["type"] == "json_schema"
        assert "logos" in wanted["json_schema"]["schema"]["properties"]

    @pytest.mark.parametrize("reports", [True, False], ids=["control", "no-report"])
    async def test_what_a_summary_used_is_estimated_if_it_is_not_told(
        self, openai: OpenAIServer, *, reports: bool
    ) -> None:
        if not reports:
            openai.usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "word " * 1_000)))
        usage = (await registry.summarizer().ask(request)).usage
        await registry.close()
        assert (usage.input_tokens > 1_000, usage.output_tokens > 0) == (not reports, True)

    @pytest.mark.parametrize(
        "odd",
        [
            {"usage": "12 tokens"},
            {"created": 1.5},
            {"created": 1_764_492_000_000_000_000},
            {"id": None, "model": None, "object": None, "system_fingerprint": 5},
            {"choices": [{"message": {"content": '{"logos": []}'}}]},
        ],
        ids=["usage", "time", "nanoseconds", "labels", "bare"],
    )
    async def test_a_summary_is_read_whatever_stands_beside_it(self, openai: OpenAIServer, odd: dict[str, Any]) -> None:
        openai.beside = odd
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        proposal = await registry.summarizer().ask(request)
        await registry.close()
        assert (proposal.text, proposal.finish) == ('{"logos": []}', "stop")

    async def test_a_model_without_schemas_is_told_the_schema_in_words(self, openai: OpenAIServer) -> None:
        model = OpenAIChatModel(
            "old-llama",
            provider=OpenAICompatibleProvider("local", base_url=openai.url),
            profile={"supports_json_schema_output": False, "supports_json_object_output": True},
        )
        provider_model = ProviderModel(
            model=model,
            profile=ModelProfile(name="local:old-llama", input_limit=8_000, output_limit=1_000),
            takes_media=others_take,
            loop=ProviderLoop(),
        )
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        proposal = await ProviderSummarizer(provider_model=provider_model, timeout=10).ask(request)
        await provider_model.loop.close()

        assert proposal.text == '{"logos": []}'
        (body,) = openai.requests
        assert body["response_format"] == {"type": "json_object"}
        assert "conversation_summary" in "".join(message["content"] for message in body["messages"])
        assert '"properties"' in body["messages"][0]["content"] + body["messages"][1]["content"]
        assert body["max_completion_tokens"] == 1_000, "never more than the model can write"

    @pytest.mark.parametrize("says", ["This response_format type is unavailable now", "Invalid value: 'x'"])
    async def test_a_server_that_takes_no_schemas_is_told_it_in_words(self, openai: OpenAIServer, says: str) -> None:
        """Control: a server that refuses something else is asked once."""
        openai.refused_format, openai.error = "json_schema", {"message": says, "type": "invalid_request_error"}
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        if "response_format" in says:
            assert (await registry.summarizer().ask(request)).text == '{"logos": []}'
            assert "conversation_summary" in str(openai.requests[-1]["messages"])
        else:
            with pytest.raises(ModelUnavailableError, match="bad_request"):
                await registry.summarizer().ask(request)
        await registry.close()
        assert len(openai.requests) == 1 + ("response_format" in says)

    async def test_fields_that_a_server_does_not_know_are_sent_once(self, openai: OpenAIServer) -> None:
        openai.unknown_fields = ("stream_options", "max_completion_tokens")
        registry = ModelRegistry(
            chat="openai:own-llama", compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url)
        )
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")), max_output_tokens=999)
        chat = ChatRequest(
            messages=(ContextMessage(role="user", content="Hello"),), settings=CallSettings(max_output_tokens=99)
        )
        for _ in range(2):
            assert said([event async for event in registry.chat().step(chat)]) == "Good day."
            assert (await registry.summarizer().ask(request)).text == '{"logos": []}'
        await registry.close()
        assert [one.get("max_tokens") for one in openai.requests] == [None, None, 99, 999, 99, 999]

    async def test_control_a_field_that_is_no_reason_is_sent_again(self, openai: OpenAIServer) -> None:
        openai.status, openai.error = 400, {"message": "max_completion_tokens is too large"}
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        for _ in range(2):
            with pytest.raises(ModelUnavailableError, match="bad_request"):
                await registry.summarizer().ask(request)
        await registry.close()
        assert ["max_completion_tokens" in one for one in openai.requests] == [True, False] * 2

    async def test_a_server_that_takes_no_form_at_all_is_told_it_in_words(self, openai: OpenAIServer) -> None:
        openai.unknown_fields = ("response_format",)
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        assert (await registry.summarizer().ask(request)).text == '{"logos": []}'
        await registry.close()
        assert [one.get("response_format", {}).get("type") for one in openai.requests] == [
            "json_schema",
            "json_object",
            None,
        ]
        assert '"properties"' in str(openai.requests[-1]["messages"])

    async def test_a_failing_server_is_asked_once(self, openai: OpenAIServer) -> None:
        openai.status = 503
        registry = ModelRegistry(
            chat="openai:own-llama", compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url)
        )
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        with pytest.raises(ModelUnavailableError, match="server_error"):
            await registry.summarizer().ask(request)
        with pytest.raises(ModelUnavailableError, match="server_error"):
            _ = [
                e
                async for e in registry.chat().step(ChatRequest(messages=(ContextMessage(role="user", content="Hi"),)))
            ]
        await registry.close()
        assert len(openai.requests) == 2


LENGTH_MESSAGES: tuple[dict[str, Any], ...] = (
    {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "Too long."},
    {"message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."},
    {"type": "exceed_context_size_error", "message": "the request exceeds the available context size, try increasing"},
)


class TestWhatProvidersRefuse:
    @pytest.mark.parametrize("error", LENGTH_MESSAGES)
    async def test_too_long_is_one_word_from_every_server(self, openai: OpenAIServer, error: dict[str, Any]) -> None:
        openai.status, openai.error = 400, error
        found = await refusal(openai)
        assert (found.reason, found.retryable) == ("context_too_long", False)

    async def test_another_bad_request_is_not_too_long(self, openai: OpenAIServer) -> None:
        openai.status, openai.error = 400, {"message": "Invalid value: 'context'.", "type": "invalid_request_error"}
        found = await refusal(openai)
        assert (found.reason, found.retryable) == ("bad_request", False)

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (400, "prompt is too long: 210031 tokens > 200000 maximum"),
            (413, "Request exceeds the maximum size: prompt is too long"),
            (400, "Input is too long for requested model."),
            (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
            (500, "input (992 tokens) is too large to process. increase the physical batch size"),
            (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
            (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
            (400, "However, the model is loaded with context length of only 4096 tokens, which is not enough."),
            (400, "prompt too long; exceeded max context length by 1200 tokens"),
            (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
            (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
            (400, "litellm.ContextWindowExceededError: litellm.BadRequestError: x"),
            (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000"),
            (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 80715."),
        ],
    )
    def test_other_makers_words(self, status: int, message: str) -> None:
        body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        found = unavailable(ModelHTTPError(status, "maker:model", body))
        assert (found.reason, found.retryable, found.status) == ("context_too_long", False, status)
        assert message not in repr(found.args)

    def test_control_a_limit_that_waiting_helps_is_one(self) -> None:
        body = {
            "error": {"message": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 200000, Used 150974"}
        }
        assert unavailable(ModelHTTPError(429, "maker:model", body)).reason == "rate_limited"
        assert unavailable(ModelHTTPError(413, "maker:model", "413 Request Entity Too Large")).reason == "bad_request"

    def test_an_outage_that_quotes_the_words_is_an_outage(self) -> None:
        body = {"error": {"message": "prompt is too long, said the proxy"}}
        assert unavailable(ModelHTTPError(503, "maker:model", body)).reason == "server_error"

    async def test_a_prompt_that_is_blocked_by_an_error_is_blocked(self, openai: OpenAIServer) -> None:
        openai.status = 400
        openai.error = {"code": "content_filter", "message": "The response was filtered", "type": None}
        registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        proposal = await registry.summarizer().ask(request)
        await registry.close()
        assert (proposal.text, proposal.finish) == ("", "blocked")

    @pytest.mark.parametrize(
        ("headers", "wait"),
        [
            ({"retry-after": "7"}, 7.0),
            ({}, None),
            ({"retry-after": "9" * 30}, 86_400.0),
            ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86_400.0),
        ],
    )
    async def test_the_wait_that_was_asked_for_is_passed_on(
        self, openai: OpenAIServer, headers: dict[str, str], wait: float | None
    ) -> None:
        openai.status, openai.headers = 429, headers
        found = await refusal(openai)
        assert (found.reason, found.retryable, found.retry_after) == ("rate_limited", True, wait)


class TestTheCircuit:
    async def test_a_server_that_is_away_is_left_alone_then_tried_once(self, openai: OpenAIServer) -> None:
        clock = FakeClock()
        registry = ModelRegistry(
            compaction="openai:own-llama",
            keys=Keys(openai_base_url=openai.url),
            failures_to_open=2,
            circuit_pause=30,
            monotonic=clock.monotonic,
        )
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))

        async def word(name: str | None = None) -> str | None:
            try:
                await registry.summarizer(name).ask(request)
            except ModelUnavailableError as error:
                return error.reason
            return None

        openai.status = 503
        assert [await word() for _ in range(4)] == ["server_error", "server_error", "circuit_open", "circuit_open"]
        assert len(openai.requests) == 2
        assert await word("openai:other") == "server_error", "each model has its own"
        assert [registry.seconds_away(name) for name in ("openai:own-llama", "openai:other")] == [30, 0]
        await clock.advance(30)
        assert [await word(), await word()] == ["server_error", "circuit_open"]
        openai.status = 200
        await clock.advance(30)
        assert [await word() for _ in range(3)] == [None] * 3
        await registry.close()

    @pytest.mark.long
    async def test_control_a_patient_one_is_asked_every_time(self, openai: OpenAIServer) -> None:
        openai.status = 503
        registry = ModelRegistry(
            compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url), failures_to_open=100
        )
        request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
        for _ in range(8):
            with pytest.raises(ModelUnavailableError, match="server_error"):
                await registry.summarizer().ask(request)
        await registry.close()
        assert len(openai.requests) == 8


async def refusal(openai: OpenAIServer) -> ModelUnavailableError:
    """The error of a summarizer that gets the server's error."""
    registry = ModelRegistry(compaction="openai:own-llama", keys=Keys(openai_base_url=openai.url))
    with pytest.raises(ModelUnavailableError) as caught:
        await registry.summarizer().ask(SummaryRequest(schema=SESSION, messages=talk(("user", "Hello"))))
    await registry.close()
    return caught.value


CALL: Part = {"type": "tool_call", "id": "c1", "name": "look up", "arguments": {"of": "x"}}


def result(content: Any, id_: str = "c1") -> Part:
    return {"type": "tool_result", "tool_call_id": id_, "content": content}


def mapped(*messages: ContextMessage, takes: Any = gemini_takes) -> list[ModelMessage]:
    return to_provider(messages, takes)


def returns(thread: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in thread for part in message.parts if isinstance(part, ToolReturnPart)]


def words(thread: Sequence[ModelMessage]) -> list[str]:
    return [str(getattr(part, "content", "")) for message in thread for part in message.parts]


class TestContexts:
    def test_sides_alternate_whatever_comes(self) -> None:
        thread = mapped(
            *(ContextMessage(role=role, content=role) for role in ("system", "user", "user")),
            *(ContextMessage(role=role, content=role) for role in ("assistant", "assistant", "user")),
        )
        assert [type(message) for message in thread] == [ModelRequest, ModelResponse, ModelRequest]
        assert words(thread) == ["system", "user", "user", "assistant", "assistant", "user"]

    def test_a_result_follows_its_call_wherever_it_was_appended(self) -> None:
        thread = mapped(
            ContextMessage(role="user", content="go"),
            ContextMessage(role="assistant", content="", parts=(CALL,)),
            ContextMessage(role="user", content="are you there?"),
            ContextMessage(role="tool", content="", parts=(result(42),)),
        )
        _, call, answer = thread
        assert isinstance(call.parts[0], ToolCallPart)
        assert call.parts[0].tool_name == "look_up"
        assert [type(part).__name__ for part in answer.parts] == ["ToolReturnPart", "UserPromptPart"]
        assert returns(thread)[0].content == 42
        assert returns(thread)[0].tool_name == "look_up"

    def test_a_result_belongs_to_the_last_call_before_it_with_its_id(self) -> None:
        turns = [
            (ContextMessage(role="assistant", content="", parts=({**CALL, "arguments": {"of": number}},)), number)
            for number in range(3)
        ]
        said = [
            one
            for made, number in turns
            for one in (
                ContextMessage(role="user", content="go"),
                made,
                *([ContextMessage(role="tool", content="", parts=(result(number),))] if number != 1 else []),
            )
        ]
        thread = mapped(*said)
        calls = [part for message in thread for part in message.parts if isinstance(part, ToolCallPart)]
        assert [(call.args, call.tool_call_id) for call in calls] == [
            ({"of": 0}, "c1"),
            ({"of": 1}, "c1_2"),
            ({"of": 2}, "c1_3"),
        ]
        assert [(one.content, one.tool_call_id) for one in returns(thread)] == [
            (0, "c1"),
            ("interrupted", "c1_2"),
            (2, "c1_3"),
        ]

    def test_a_pending_call_gets_a_stub(self) -> None:
        thread = mapped(
            ContextMessage(role="user", content="go"),
            ContextMessage(role="assistant", content="", parts=(CALL,)),
            ContextMessage(role="user", content="never mind"),
        )
        assert [part.content for part in returns(thread)] == ["interrupted"]

    def test_a_result_without_its_call_is_told_in_words(self) -> None:
        thread = mapped(ContextMessage(role="tool", content="", parts=(result({"a": 1}, "other"),)))
        assert returns(thread) == []
        assert words(thread) == ['[result of a tool: {"a": 1}]']

    @pytest.mark.parametrize("content", [[], None, {}, 0, [0], ""])
    def test_a_result_without_anything_in_it_is_told_too(self, content: Any) -> None:
        call = ContextMessage(role="assistant", content="", parts=(CALL,))
        (sent,) = returns(mapped(call, ContextMessage(role="tool", content="", parts=(result(content),))))
        assert sent.model_response_str() == (content if isinstance(content, str) else json.dumps(content))

    def test_what_a_tool_message_says_beside_its_result_is_kept(self) -> None:
        call = ContextMessage(role="assistant", content="", parts=(CALL,))
        only, beside = (
            mapped(call, ContextMessage(role="tool", content="measured twice", parts=(part,)))
            for part in (result(None), result(42))
        )
        assert returns(only)[0].content == "measured twice"
        assert returns(beside)[0].content == {"content": 42, "text": "measured twice"}

    @pytest.mark.parametrize(
        ("media_type", "shown"),
        [
            ("image/png", BinaryContent(data=b"hi", media_type="image/png")),
            ("audio/wav", "[attached: audio/wav]"),  # control: a type that the model does not read
        ],
    )
    def test_a_picture_that_a_tool_gave_is_shown_beside_its_result(self, media_type: str, shown: object) -> None:
        call = ContextMessage(role="assistant", content="", parts=(CALL,))
        picture = {"type": "media", "media_type": media_type, "data": "aGk="}
        answered = ContextMessage(role="tool", content="", parts=(result("done"), picture))
        thread = mapped(call, answered, takes=others_take)
        prompts = [part for part in thread[-1].parts if isinstance(part, UserPromptPart)]
        assert [part.content for part in prompts] == [shown if isinstance(shown, str) else [shown]]
        assert returns(thread)[0].content == "done"

    @pytest.mark.parametrize(
        ("arguments", "as_object"),
        [
            ('{"a": 1}', {"a": 1}),
            ("not json", {"input": "not json"}),
            ([1], {"input": [1]}),
            (None, {}),
            ("[1]", {"input": [1]}),
        ],
    )
    def test_arguments_become_an_object(self, arguments: Any, as_object: dict[str, Any]) -> None:
        (thread, _) = mapped(ContextMessage(role="assistant", content="", parts=({**CALL, "arguments": arguments},)))
        assert cast("ToolCallPart", thread.parts[0]).args == as_object

    @pytest.mark.parametrize(
        ("part", "gemini", "others"),
        [
            ({"media_type": "image/png", "data": "AAAA"}, True, True),
            ({"media_type": "image/png", "data": "data:image/png;base64,AAAA"}, True, True),
            ({"media_type": "application/pdf", "data": "AAAA"}, True, False),
            ({"media_type": "video/mp4", "data": "AAAA"}, True, False),
            ({"media_type": "application/zip", "data": "AAAA"}, False, False),
            ({"media_type": "image/png", "data": "not base64!"}, False, False),
            ({"media_type": "image/png", "url": "http://169.254.169.254/secret"}, False, False),
            ({}, False, False),
        ],
    )
    def test_media_goes_inline_where_it_is_read_and_in_words_elsewhere(
        self, part: dict[str, Any], gemini: object, others: object
    ) -> None:
        message = ContextMessage(role="user", content="see", parts=({"type": "media", **part},))
        for takes, inline in ((gemini_takes, gemini), (others_take, others)):
            (request,) = mapped(message, takes=takes)
            pieces = cast("Any", request.parts[0]).content
            assert pieces[0] == "see"
            assert isinstance(pieces[1], BinaryContent) == inline
            assert inline or str(pieces[1]).startswith("[attached: ")

    def test_a_text_given_twice_is_sent_once_and_nothing_is_not_sent(self) -> None:
        thread = mapped(
            ContextMessage(role="user", content="hello", parts=({"type": "text", "text": "hello"},)),
            ContextMessage(role="assistant", content=""),
            ContextMessage(role="user", content=" "),
        )
        assert words(thread) == ["hello"]

    def test_parts_of_unknown_kinds_are_told(self) -> None:
        thread = mapped(
            ContextMessage(role="user", content="", parts=({"type": "text", "text": "t"}, {"type": "poll", "q": 1})),
            ContextMessage(role="assistant", content="", parts=({"type": "media", "media_type": "image/png"},)),
        )
        assert cast("Any", thread[0].parts[0]).content == ["t", '{"type": "poll", "q": 1}']
        assert words(thread[1:]) == ["[attached: image/png]"]
