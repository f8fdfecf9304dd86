"""``make live``: a talk, a compaction, a verification and a cached prompt with the configured model, for a few cents.

It needs a key. The service runs here, with a temporary database of its own. A made-up conversation is stored; the model
answers two turns, and a third one after the compaction. Then the provider is compared with the server that imitates it
in the tests. The cost is stated first, and has to be confirmed unless ``YES=1``. Exit status 0: everything worked; 1:
something failed; 2: there is no key, or the cost was not confirmed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import httpx

from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ChatRequest, ContextMessage
from app.devserver import EmbeddedServers, Endpoints
from app.infrastructure.clock import SystemClock
from app.providers.registry import ModelRegistry
from app.settings import Settings
from app.storage.migrations import run_migrations
from bench.fixture.served import keys_of
from bench.process import Process, running
from bench.report import print_table, take_no_options
from bench.spending import (
    NOT_RUN,
    NoModelError,
    Planned,
    agreed,
    base_url_of,
    keys_in,
    live_settings,
    price_of,
    registry_of,
)
from bench.trust.rounds import talk_named
from tests.gemini_server import running_gemini
from tests.openai_server import running_openai

Json = dict[str, Any]

MAX_USD: Final = 0.10
_TALK: Final = "wedding"
_KEPT: Final = 4  # messages of the tail
_PLANNED: Final = Planned(calls=9, input_tokens=45_000, output_tokens=9_000)
"""The planned calls: three turns and a probe, a compaction asked about again, two of a verification; with thoughts."""
_CALLS: Final = 12
"""The calls of compactions and verifications that the spend guard allows."""
_POLICY: Final[Json] = {"context_window": 32_000, "max_tokens": -1}
_QUESTIONS: Final = (
    "In one sentence: which venue have we settled on?",
    "In one sentence: what is still open?",
    "In one sentence: what does the venue cost?",
)
_PROBE: Final = "Answer with the one word OK."
_GOOGLE: Final = "https://generativelanguage.googleapis.com"
_OPENAI: Final = "https://api.openai.com/v1"
_PATIENCE: Final = 60.0
_UNKNOWN: Final = "no-such-model-5b2e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was tried, and the result."""

    name: str
    is_good: bool
    words: str
    cost_usd: float | None = None


class _Trying:
    """Tries the steps with one running service."""

    def __init__(self, process: Process, key: str) -> None:
        self._process = process
        self._headers = {"Authorization": f"Bearer {key}"}
        self._id = ""

    async def steps(self) -> list[Step]:
        """Do all steps; a failure that prevents the next steps ends it."""
        done: list[Step] = []
        for step in (self._talk, self._cache, self._compaction, self._verification, self._talk_after):
            done.append(await step())
            spent = sum(one.cost_usd or 0 for one in done)
            if spent > MAX_USD:
                done.append(Step(name="cost", is_good=False, words=f"ended early: ${spent:.3f} are spent"))
                break
        return done

    async def _talk(self) -> Step:
        talk = talk_named(_TALK)
        made = await self._sent("/conversations", {"title": "live", "policy": _POLICY, "locale": talk.language})
        self._id = made["id"]
        messages = [{"role": one.role, "content": one.content} for one in talk.messages]
        for start in range(0, len(messages), 50):
            await self._sent(f"/conversations/{self._id}/messages/batch", {"messages": messages[start : start + 50]})
        return await self._turn("talk", _QUESTIONS[0])

    async def _cache(self) -> Step:
        step = await self._turn("cache", _QUESTIONS[1])
        if not step.is_good or " 0 cached" not in step.words:
            return step
        words = f"{step.words}; nothing was cached: a provider may need a second longer, or cache nothing"
        return Step(name="cache", is_good=True, words=words, cost_usd=step.cost_usd)

    async def _talk_after(self) -> Step:
        return await self._turn("talk after it", _QUESTIONS[2])

    async def _turn(self, name: str, question: str) -> Step:
        try:
            done = await self._sent(f"/conversations/{self._id}/chat", {"content": question})
        except _RefusedError as error:
            return Step(name=name, is_good=False, words=str(error))
        reply, usage = done["reply"], done["reply"]["usage"] or {}
        reply_text = " ".join(reply["content"].split())
        counted = usage.get("input_tokens", 0)
        words = f"{counted} tokens in, {usage.get('cached_tokens', 0)} cached, {usage.get('output_tokens', 0)} out"
        return Step(
            name=name,
            is_good=bool(reply_text) and counted > 0,
            words=f"{words}: {reply_text[:80]!r}",
            cost_usd=usage.get("cost_usd"),
        )

    async def _compaction(self) -> Step:
        try:
            row = await self._sent(f"/conversations/{self._id}/compact", {"keep_tail_messages": _KEPT})
        except _RefusedError as error:
            return Step(name="compaction", is_good=False, words=str(error))
        tried = ", ".join(f"{one['outcome']} {one['reason'] or ''}".strip() for one in row["attempts"])
        words = f"{row['status']} ({tried}), {row['tokens_before']} to {row['tokens_after']} tokens"
        repairs = ", ".join(sorted({one["reason"] for one in row["repairs"]})) or "none"
        return Step(
            name="compaction",
            is_good=row["status"] == "applied" and row["attempts"][-1]["model"] != "offline",
            words=f"{words}, repairs: {repairs}",
            cost_usd=row["usage"]["cost_usd"],
        )

    async def _verification(self) -> Step:
        outcome = await self._process.container.verification.work(UUID(self._id))
        found = await self._sent(f"/conversations/{self._id}/states?limit=2&order=desc", None)
        counts = next((one["verification"] for one in found["data"] if one["verification"]), None)
        if counts is None:
            return Step(name="verification", is_good=False, words=outcome)
        verdicts = ", ".join(f"{counts[name]} {name}" for name in _VERDICTS)
        usage = counts.get("usage") or {}
        return Step(
            name="verification",
            is_good=outcome in {"changed", "verified"},
            words=f"{outcome}: {verdicts}",
            cost_usd=usage.get("cost_usd"),
        )

    async def _sent(self, path: str, body: Json | None) -> Json:
        method = "GET" if body is None else "POST"
        answer = await self._process.http.request(method, path, json=body, headers=self._headers)
        if not answer.is_success:
            problem = answer.json()
            raise _RefusedError(f"{answer.status_code} {problem.get('code')}: {problem.get('detail')}")
        found: Json = answer.json()
        return found


_VERDICTS: Final = ("supported", "contradicted", "not_stated", "unproven", "unanswered")


class _RefusedError(Exception):
    """The service answered a step with an error."""


# --- the provider compared with the server that imitates it in the tests


def shape_of(value: object, path: str = "") -> Iterator[str]:
    """The paths and types in an answer, without its values: ``usage.input_tokens: int``."""
    if isinstance(value, Mapping):
        for name, inside in value.items():
            yield from shape_of(inside, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inside in value:
            yield from shape_of(inside, f"{path}[]")
    else:
        yield f"{path}: {type(value).__name__}"


def differences(real: object, scripted: object) -> list[str]:
    """The paths and types that only one of two answers has."""
    ours, theirs = set(shape_of(scripted)), set(shape_of(real))
    only = [("only the provider", theirs - ours), ("only the scripted server", ours - theirs)]
    return [f"{who}: {line}" for who, lines in only for line in sorted(lines)]


async def _answer(model: str, url: str | None, key: str) -> object:
    """The raw answer to a tiny request."""
    name = model.partition(":")[2]
    if model.startswith("google"):
        target = f"{(url or _GOOGLE).rstrip('/')}/v1beta/models/{name}:generateContent"
        body: Json = {"contents": [{"role": "user", "parts": [{"text": _PROBE}]}]}
        headers = {"x-goog-api-key": key}
    else:
        target = f"{(url or _OPENAI).rstrip('/')}/responses"
        body = {"model": name, "input": [{"role": "user", "content": _PROBE}]}
        headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(timeout=_PATIENCE) as client:
        found = await client.post(target, json=body, headers=headers)
    return found.json()


async def compared(model: str, url: str | None, key: str) -> list[str]:
    """How the provider's answer differs from that of the scripted server."""
    if not model.startswith(("google", "openai-responses")):
        return ["not compared: the tests script Gemini and OpenAI's Responses (openai-responses:…) only"]
    try:
        if model.startswith("google"):
            with running_gemini() as gemini:
                return differences(await _answer(model, url, key), await _answer(model, gemini.url, key))
        with running_openai() as openai:
            return differences(await _answer(model, url, key), await _answer(model, openai.url, key))
    except (httpx.HTTPError, ValueError) as error:
        return [f"not compared: {error!r}"]


async def refusals(model: str, settings: Settings) -> list[Step]:
    """Whether a wrong key and an unknown model give different errors, as they do with the scripted servers."""
    unknown = f"{model.partition(':')[0]}:{_UNKNOWN}"
    return [
        await _refusal("a model that is not there", registry_of(unknown, settings), "model_not_found"),
        await _refusal("a wrong key", registry_of(model, settings, key="wrong"), "unauthorized"),
    ]


async def _refusal(name: str, registry: ModelRegistry, expected: str) -> Step:
    try:
        await registry.prepare()
        request = ChatRequest(messages=(ContextMessage(role="user", content=_PROBE),))
        async for _ in registry.chat().step(request):
            pass
    except ModelUnavailableError as error:
        return Step(name=name, is_good=error.reason == expected, words=f"{error.reason}, expected {expected}")
    finally:
        await registry.close()
    return Step(name=name, is_good=False, words=f"answered, expected {expected}")


# --- the command


async def _tried(servers: Endpoints, settings: Settings) -> list[Step]:
    fixed: Json = dict(keys_in(settings)) | {"tenant_calls_per_hour": _CALLS}
    async with running(servers, SystemClock(), **fixed) as process:
        await process.container.parts.models.prepare()
        keys = await keys_of(process, ("live",))
        return await _Trying(process, keys["live"]).steps()


def main() -> int:
    """Run the command; return its exit status."""
    try:
        settings = live_settings()
    except NoModelError as error:
        print(error, file=sys.stderr)
        return NOT_RUN
    model = settings.resolved_compaction_model
    url = base_url_of(model, settings)
    cost = price_of(model, url, _PLANNED)
    if cost is not None and cost > MAX_USD:
        print(f"{model} would cost about ${cost:.2f}, more than ${MAX_USD:.2f}: name another.", file=sys.stderr)
        return NOT_RUN
    if not agreed(model, _PLANNED, cost):
        return NOT_RUN
    with tempfile.TemporaryDirectory(prefix="tl-") as folder, EmbeddedServers(Path(folder), durable=False) as servers:
        run_migrations(servers.database_url)
        steps = asyncio.run(_tried(servers, settings))
    key = keys_in(settings).get("google_api_key" if model.startswith("google") else "openai_api_key", "")
    apart = asyncio.run(compared(model, url, key))
    _print_steps(steps, asyncio.run(refusals(model, settings)), apart)
    return 0 if all(step.is_good for step in steps) else 1


def _print_steps(steps: Sequence[Step], refused: Sequence[Step], apart: Sequence[str]) -> None:
    costs = ["" if step.cost_usd is None else f"{step.cost_usd:.4f}" for step in steps]
    rows = [
        [step.name, "yes" if step.is_good else "NO", cost, step.words] for step, cost in zip(steps, costs, strict=True)
    ]
    print_table(["step", "went well", "USD", "what came"], rows)
    known = [step.cost_usd for step in steps if step.cost_usd is not None]
    print(f"\nSpent: {f'${sum(known):.4f}' if known else 'unknown'}")
    print("\nWhat the scripted server of the tests has otherwise:")
    for line in [*apart, *(f"{step.name}: {step.words}" for step in refused if not step.is_good)] or ["nothing"]:
        print(f"  {line}")


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())
