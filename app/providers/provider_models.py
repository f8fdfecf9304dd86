"""A provider's model as a ``ChatModel`` and as a ``Summarizer``: one call each, never repeated here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from app.core.context.files import with_files
from app.core.model.conversation import Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import (
    ChatRequest,
    ContextMessage,
    DetailRequest,
    FinishReason,
    ModelProfile,
    Proposal,
    ReasoningDelta,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    VerificationRequest,
)
from app.core.summarizer.detail_prompts import DetailPrompt, render_detail
from app.core.summarizer.prompts import PROMPT_WORDS, PromptWords, SummaryPrompt, render_summary
from app.core.text.escaping import clean
from app.core.text.token_counts import estimate_text
from app.core.validation.verifier_prompts import render_verification
from app.off_loop import BYTES_PER_ITEM, off_loop
from app.providers import gemini_caches, openai_responses
from app.providers.call_settings import (
    answers_by_call,
    chosen_settings,
    least_reasoning,
    parameters_of,
    without_lost_thoughts,
)
from app.providers.failures import TIMEOUT, is_block, is_reasoning_refused, is_schema_refused, unavailable
from app.providers.loop import ProviderLoop
from app.providers.messages import TakesMedia, to_provider
from app.providers.refusals import Refusals
from app.providers.replies import (
    CALLS_BYTES,
    PieceCleaner,
    answer_of,
    calls_bytes,
    calls_of,
    calls_tool,
    delta_of,
    finish_of,
    finish_of_stream,
    is_id,
    refuse_many_parts,
    text_of,
    usage_of,
)
from app.providers.thoughts import Thoughts, with_thoughts_wanted
from app.usecases.ports import SummarizerRequest

OUTPUT_NAME: Final = "candidate"
_REPEATS: Final = "max_retries"
_DEPTH: Final = "thinking"
_THOUGHTS: Final = "thoughts"
"""The option of showing thoughts, as refusals are remembered."""


class _ThoughtsRefusedError(ModelUnavailableError):
    """The model refused a request that asks it to show its thoughts, and speaks of reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderModel:
    """A provider's language model and its profile. The chat model and the summarizer share one."""

    model: Model
    profile: ModelProfile
    takes_media: TakesMedia
    loop: ProviderLoop
    """The event loop in which the provider's client runs."""
    refused: Refusals = field(default_factory=Refusals)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChat:
    """A chat model; ``timeout`` bounds a whole step, in seconds."""

    provider_model: ProviderModel
    timeout: float

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""
        return self.provider_model.profile

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        """Stream one reply, its calls at the end. Raises ``ModelUnavailableError``."""
        async with aclosing(self.provider_model.loop.stream(lambda: self._steps(request))) as events:
            async for event in events:
                yield event

    async def _steps(self, request: ChatRequest) -> AsyncGenerator[StepEvent, None]:
        """The steps of a call, on the loop of the client.

        A connection that breaks before anything came is tried once more: providers close idle connections, and a
        request that is sent at that moment is lost. A model that refuses to show its thoughts is asked without.
        """
        refused = self.provider_model.refused
        if request.reasoning == "asked" and refused.has(_THOUGHTS):
            request = replace(request, reasoning="shown")
        asked = request
        for is_last in (False, True):
            has_event = False
            try:
                async with aclosing(self._attempt(asked)) as events:
                    async for event in events:
                        has_event = True
                        yield event
            except _ThoughtsRefusedError:
                if is_last or has_event:
                    raise
                asked = replace(request, reasoning="shown")
            except ModelUnavailableError as error:
                if is_last or has_event or error.reason != "connection":
                    raise
            else:
                if asked is not request:
                    refused.note(_THOUGHTS)
                return

    async def _attempt(self, request: ChatRequest) -> AsyncGenerator[StepEvent, None]:
        model = self.provider_model.model
        size = sum(BYTES_PER_ITEM + len(message.content) for message in request.messages)
        settings, parameters, thread = await off_loop(self._prepared_call, request, size=size)
        by_call, thoughts, pieces = answers_by_call(model, request), Thoughts(), PieceCleaner()
        named = has_words = False
        try:
            # Preparing moves system messages in mid-conversation to where they may be, and marks user text that only
            # looks like one.
            thread = await off_loop(model.prepare_messages, thread, parameters, size=size)
            if request.cache is not None:
                system = request.messages[0].content
                # The cache contains the files too.
                _, _, rest = await off_loop(self._prepared_call, replace(request, files=()), size=size)
                rest = await off_loop(model.prepare_messages, rest, parameters, size=size)
                shortened = gemini_caches.request_with_cache(
                    rest, parameters, settings, name=request.cache, system=system
                )
                thread, parameters, settings = shortened or (thread, parameters, settings)
                named = shortened is not None
            async with model_request_stream(
                model, thread, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for event in stream:
                    refuse_many_parts(event)
                    if request.reasoning != "off" and (thought := thoughts.of(event)):
                        yield ReasoningDelta(text=thought)
                    if not by_call and (delta := pieces.cleaned(delta_of(event))):
                        has_words = has_words or not delta.isspace()
                        yield TextDelta(text=delta)
                response = stream.get()
            end = self._end(response, by_call=by_call, named=named)
        except Exception as error:  # noqa: BLE001 - whatever a provider's client throws, a turn must see our word
            if request.reasoning == "asked" and is_reasoning_refused(error):
                raise _ThoughtsRefusedError("bad_request", retryable=False, status=unavailable(error).status) from None
            yield StepFinish(reason=_end_by(error, has_words=has_words), usage=Usage(), model=self.profile.name)
            return
        if held := pieces.rest():
            yield TextDelta(text=held)
        for last in end:
            yield last

    def _end(self, response: ModelResponse, *, by_call: bool, named: bool) -> list[StepEvent]:
        """What comes after the stream: an answer that was given by a call, the calls, the finish."""
        model, id_ = self.provider_model.model, response.provider_response_id
        calls = calls_of(response, keeps_ids=self.profile.stateful)
        if is_cut_off := calls_bytes(calls) > CALLS_BYTES:
            calls = []
        text = clean(answer_of(response)) if by_call and not calls else ""
        finish = StepFinish(
            reason="length" if is_cut_off else finish_of_stream(model, response),
            usage=usage_of(model, response),
            model=self.profile.name,
            response_id=id_ if self.profile.stateful and is_id(id_) else None,
            named_cache=named,
        )
        return [*([TextDelta(text=text)] if text else []), *calls, finish]

    def _prepared_call(self, request: ChatRequest) -> tuple[ModelSettings, ModelRequestParameters, list[ModelMessage]]:
        wanted = chosen_settings(self.provider_model.model, request.settings, request.must_call)
        if request.reasoning == "asked":
            wanted = with_thoughts_wanted(self.provider_model.model, wanted)
        settings = _single_attempt_settings(self.provider_model.model, self.timeout, wanted)
        parameters = parameters_of(self.provider_model.model, request)
        messages: Sequence[ContextMessage] = with_files(request.messages, request.files, request.locale)
        if self.profile.stateful:
            keeps = openai_responses.kept_settings(settings, request.continues)
            settings = keeps if request.is_kept else openai_responses.not_kept(settings)
            parameters.instruction_parts, messages = openai_responses.instructions_of(messages)
        answered = request.continues.open_calls if request.continues else ()
        thread = to_provider(messages, self.provider_model.takes_media, answered, request.locale)
        return without_lost_thoughts(self.provider_model.model, settings, thread), parameters, thread


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSummarizer:
    """A summarizer; ``timeout`` bounds a whole call, in seconds."""

    provider_model: ProviderModel
    timeout: float
    words: PromptWords = PROMPT_WORDS
    """The rules of the prompt. Other rules than the present ones are for comparing versions."""

    @property
    def profile(self) -> ModelProfile:
        """Limits of the model."""
        return self.provider_model.profile

    async def ask(self, request: SummarizerRequest) -> Proposal:
        """Ask for a text. If it has to be JSON, it is constrained to its schema if the model supports that.

        The text is returned unchanged; the gate reads and judges it. Raises ``ModelUnavailableError``.
        """
        prompt = await off_loop(_rendered_prompt, request, self.words)
        message = ModelRequest(parts=[SystemPromptPart(prompt.system), UserPromptPart(prompt.user)])
        parameters = ModelRequestParameters()
        if isinstance(prompt, SummaryPrompt):
            parameters = _structured_output(self.provider_model.model, prompt.json_schema)
        output_limit = min(request.max_output_tokens, self.profile.output_limit)
        limited = ModelSettings(max_tokens=output_limit)
        settings = _single_attempt_settings(self.provider_model.model, self.timeout, limited)
        # Reasoning counts towards the output limit, and at the default depth would leave too little room for the
        # answer.
        settings["thinking"] = least_reasoning(self.provider_model.model)
        if self.profile.stateful:
            settings = openai_responses.not_kept(settings)
        try:
            response = await self.provider_model.loop.run(lambda: self._response(message, settings, parameters))
        except Exception as error:  # noqa: BLE001 - whatever a provider's client throws, the ladder must see our word
            if not is_block(error):
                raise unavailable(error) from None
            return Proposal(text="", finish="blocked", model=self.profile.name)
        return Proposal(
            text=text_of(response),
            finish=finish_of(response),
            model=self.profile.name,
            usage=await off_loop(_usage_or_estimate, self.provider_model, prompt, response),
            called_tool=calls_tool(response),
        )

    async def _response(
        self, message: ModelRequest, settings: ModelSettings, parameters: ModelRequestParameters
    ) -> ModelResponse:
        """The answer; if the server refuses the schema or the depth of reasoning, that to the request without.

        The schema is then told in words.
        """
        model, refused = self.provider_model.model, self.provider_model.refused
        schema = _name_of_schema(parameters)
        known = {option for option in (_DEPTH, schema) if refused.has(option)}
        left_out = known.copy()
        while True:
            used = settings.copy()
            if _DEPTH in left_out:
                del used[_DEPTH]
            try:
                response = await model_request(
                    model,
                    [message],
                    model_settings=used,
                    model_request_parameters=_in_words(parameters) if schema in left_out else parameters,
                )
            except ModelHTTPError as error:
                if _DEPTH not in left_out and is_reasoning_refused(error):
                    left_out.add(_DEPTH)
                elif parameters.output_mode == "native" and schema not in left_out and is_schema_refused(error):
                    left_out.add(schema)
                else:
                    raise
            else:
                for option in left_out - known:
                    refused.note(option)
                return response


def _end_by(error: Exception, *, has_words: bool) -> FinishReason:
    """How an error ended a step. Raises ``ModelUnavailableError`` if it left no answer.

    If a model still writes when its time is up, its words are kept: the next try would take as long.
    """
    if is_block(error):
        return "blocked"
    failure = unavailable(error)
    if has_words and failure.reason == TIMEOUT:
        return "other"
    raise failure from None


def _rendered_prompt(request: SummarizerRequest, words: PromptWords) -> SummaryPrompt | DetailPrompt:
    match request:
        case SummaryRequest():
            return render_summary(request, words)
        case DetailRequest():
            return render_detail(request)
        case VerificationRequest():
            return render_verification(request)


def _usage_or_estimate(asked: ProviderModel, prompt: SummaryPrompt | DetailPrompt, response: ModelResponse) -> Usage:
    """The usage that the provider reports; without a report, an estimate, since limits count it."""
    usage = usage_of(asked.model, response)
    if usage.input_tokens or usage.output_tokens:
        return usage
    read, written = estimate_text(prompt.system) + estimate_text(prompt.user), estimate_text(text_of(response))
    return Usage(input_tokens=read, output_tokens=written, cost_usd=asked.profile.cost(read, written))


def _single_attempt_settings(model: Model, timeout: float, more: ModelSettings) -> ModelSettings:
    settings = more.copy()
    settings["request_timeout"] = timeout
    if _REPEATS not in model.unsupported_settings:  # else the library would warn, and the client is told otherwise
        settings[_REPEATS] = 0  # since the use cases repeat calls
    return settings


def _name_of_schema(parameters: ModelRequestParameters) -> str:
    """The option of being held to this schema, as refusals are remembered."""
    output = parameters.output_object
    written = json.dumps(output.json_schema, sort_keys=True) if output else ""
    return f"schema {hashlib.sha256(written.encode()).hexdigest()}"


def _in_words(parameters: ModelRequestParameters) -> ModelRequestParameters:
    return replace(parameters, output_mode="prompted", allow_text_output=True)


def _structured_output(model: Model, schema: dict[str, object]) -> ModelRequestParameters:
    # Strict: if a provider needs more in a schema for that, as OpenAI does, its client adds it.
    output = OutputObjectDefinition(json_schema=schema, name=OUTPUT_NAME, strict=True)
    if model.profile.get("supports_json_schema_output", False):
        return ModelRequestParameters(output_mode="native", output_object=output, allow_text_output=False)
    return ModelRequestParameters(output_mode="prompted", output_object=output)
