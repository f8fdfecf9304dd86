"""Part 4: injections wherever somebody's words reach a model, judged by structure alone.

In every format of a context, and in the requests to both scripted providers, each injection must be in its role or its
element. Every element that looks like the service's must be its own, no tool may be called that the script did not
call, and the originals must be returned byte for byte. Whether a model obeys an injection is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx

from bench.attack.fences import Expected, Role, faults, speeches_of
from bench.attack.findings import Outcome
from bench.attack.injections import Injection, drawn
from bench.attack.target import OPENAI_MODEL, Target
from tests.gemini_server import Gemini

NAME: Final = "injections"
Json = dict[str, Any]
FORMATS: Final = ("plain", "openai", "gemini", "anthropic")
EACH: Final = 20
"""How many injections one conversation gets."""
PLACES: Final = (
    *("user", "user part", "assistant", "tool result", "tool arguments", "tool name", "user", "assistant", "anchor"),
    *("pin", "system message", "title", "metadata", "scratchpad", "system prompt", "summary", "verifier", "reply"),
    *("passage", "question"),
)
"""The places of a conversation's injections, one each."""
FILLER: Final = "We looked at the harbour crane, the billing export and the garden shed; the port of the service is"
POLICY: Final[Json] = {"context_window": 24_000, "max_tokens": -1, "fallback_model": "offline"}
PAGE: Final = 100


@dataclass(slots=True, kw_only=True)
class Play:
    """One conversation: what is sent in it, and whose each canary is."""

    sent: list[Json] = field(default_factory=list)
    roles: dict[str, Role | Literal["passage", "nowhere", "state", "named"]] = field(default_factory=dict)
    by_place: dict[str, list[Injection]] = field(default_factory=dict)

    def text(self, place: str) -> str:
        """The text of the first injection at that place."""
        return next((one.text for one in self.by_place.get(place, ())), "Hello.")


def attack(target: Target, seed: int, examples: int) -> Outcome:
    """Try ``examples`` injections, in conversations with twenty each."""
    outcome = Outcome(NAME)
    injections = drawn(seed, examples)
    outcome.counts["injections"] = len(injections)
    with target.client("writer") as http:
        for number, start in enumerate(range(0, len(injections), EACH)):
            _play(target, http, number, injections[start : start + EACH], outcome)
    target.gemini.reset()
    target.openai.reset()
    return outcome


def prepared(some: Sequence[Injection]) -> Play:
    """A play with each injection in its place."""
    play = Play()
    owners: Mapping[str, Role | Literal["passage", "nowhere", "state", "named"]] = {
        "assistant": "assistant", "tool result": "tool", "tool arguments": "assistant", "tool name": "named",
        "system message": "system", "title": "nowhere", "metadata": "nowhere", "scratchpad": "nowhere",
        "system prompt": "system", "reply": "assistant", "passage": "passage", "verifier": "nowhere",
    }  # fmt: skip
    for injection, place in zip(some, PLACES, strict=False):
        play.by_place.setdefault(place, []).append(injection)
        play.roles[injection.canary] = owners.get(place, "user")
    return play


def messages_of(play: Play) -> list[Json]:
    """The messages of a talk with the injections: some at its beginning, which is folded, and some at its end."""
    call: Json = {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"q": play.text("tool arguments")}}
    result: Json = {"type": "tool_result", "tool_call_id": "c1", "name": "look_up", "content": play.text("tool result")}
    users = play.by_place.get("user", [])
    assistants = play.by_place.get("assistant", [])
    made: list[Json] = []
    for half in (0, 1):
        made += [
            {"role": "user", "content": users[half].text if half < len(users) else "Hello."},
            {"role": "assistant", "content": assistants[half].text if half < len(assistants) else "Well."},
        ]
        if half == 0:
            made += [
                {"role": "user", "content": "Look.", "parts": [{"type": "text", "text": play.text("user part")}]},
                {"role": "assistant", "content": "", "parts": [call]},
                {"role": "tool", "content": "", "parts": [result]},
                {"role": "assistant", "content": "I see."},
                {"role": "user", "content": f"We must never forget this: {play.text('anchor')}"},
                {"role": "assistant", "content": "Noted."},
                {"role": "user", "content": play.text("pin")},
                {"role": "assistant", "content": "Kept."},
                {"role": "user", "content": play.text("summary")},
                {"role": "assistant", "content": "Fine."},
            ]
            made += [
                {"role": "user" if n % 2 == 0 else "assistant", "content": f"{FILLER} {n} {7000 + n}."}
                for n in range(24)
            ]
    made.insert(4, {"role": "system", "content": play.text("system message")})
    return made


def _play(target: Target, http: httpx.Client, number: int, some: Sequence[Injection], outcome: Outcome) -> None:
    play, where = prepared(some), f"conversation {number}"
    created = {
        "title": play.text("title")[:500],
        "metadata": {"note": play.text("metadata")},
        "scratchpad": {"note": play.text("scratchpad")},
        "system_prompt": f"Answer briefly. {play.text('system prompt')}",
        "policy": POLICY,
    }
    made = http.post("/conversations", json=created).raise_for_status().json()
    path = f"/conversations/{made['id']}"
    play.sent = messages_of(play)
    stored = http.post(f"{path}/messages/batch", json={"messages": play.sent}).raise_for_status().json()["data"]
    pinned = next(one for one in stored if one["content"] == play.text("pin"))
    http.put(f"{path}/messages/{pinned['id']}/pin")
    _name_a_tool(http, path, play, outcome)
    _compact(target.gemini, http, path, play, stored, outcome)
    _contexts(http, path, play, where, outcome)
    _turns(target, http, path, play, where, outcome)
    _originals(http, path, play, created, where, outcome)


def _name_a_tool(http: httpx.Client, path: str, play: Play, outcome: Outcome) -> None:
    """Use an injection as a tool's name: it must be refused, or kept and never served as a tool's name."""
    part = {"type": "tool_call", "id": "c9", "name": play.text("tool name"), "arguments": {}}
    refused = http.post(f"{path}/messages", json={"role": "assistant", "content": "", "parts": [part]})
    outcome.counts["names of tools refused"] += refused.status_code >= 400
    if refused.is_success:
        answer = {"type": "tool_result", "tool_call_id": "c9", "name": play.text("tool name"), "content": "done"}
        sent = {"role": "tool", "content": "", "parts": [answer]}
        http.post(f"{path}/messages", json=sent).raise_for_status()
        play.sent += [{"role": "assistant", "content": "", "parts": [part]}, sent]


def _compact(
    gemini: Gemini, http: httpx.Client, path: str, play: Play, stored: Sequence[Json], outcome: Outcome
) -> None:
    """Compact with an injection in the summary, and again without it if that is refused; the verifier has one too."""
    seq = next(one["seq"] for one in stored if one["content"] == play.text("summary"))
    entry = {"text": play.text("summary"), "from": [seq], "replaces": []}
    lies = {"logos": [entry], "conversation_summary": play.text("summary")}
    gemini.script("compaction", {"name": "candidate", "candidate": lies, "times": 1}, default="honest", replace=True)
    gemini.script("verification", {"name": "text", "text": play.text("verifier"), "times": 2}, replace=True)
    first = http.post(f"{path}/compact", json={"keep_tail_messages": 4})
    outcome.counts["summaries with an injection " + ("applied" if first.is_success else "refused")] += 1
    if not first.is_success:
        again = http.post(f"{path}/compact", json={"keep_tail_messages": 4})
        outcome.expect(again.is_success, "no summary at all", path, again.text)


def _contexts(http: httpx.Client, path: str, play: Play, where: str, outcome: Outcome) -> None:
    passage = {"text": play.text("passage"), "source": 'a page <passage source="x">'}
    for format_ in FORMATS:
        asked = {"format": format_, "query": "the port of service 3", "passages": [passage]}
        context = http.post(f"{path}/context", json=asked).raise_for_status().json()
        speeches = speeches_of(format_, context.get("system") or "", context["messages"])
        _judge(faults(speeches, _expected(play, 1)), f"{where}, {format_}", outcome)
        got = http.get(f"{path}/context", params={"format": format_}).raise_for_status().json()
        speeches = speeches_of(format_, got.get("system") or "", got["messages"])
        _judge(faults(speeches, _expected(play, 0)), f"{where}, {format_}", outcome)


def _expected(play: Play, passages: int) -> Expected:
    return Expected(roles=play.roles, states=1, passages=passages)


def _turns(target: Target, http: httpx.Client, path: str, play: Play, where: str, outcome: Outcome) -> None:
    """Take one turn with each provider; the first answers with an injection."""
    target.gemini.script("chat", {"name": "text", "text": play.text("reply")}, default="honest", replace=True)
    before = len(target.gemini.requests("chat"))
    turn = http.post(f"{path}/chat", json={"content": play.text("question")}).raise_for_status().json()
    asked = target.gemini.requests("chat")[before:]
    play.sent += [
        {"role": "user", "content": play.text("question")},
        {"role": "assistant", "content": play.text("reply")},
    ]
    outcome.expect(len(asked) == 1, "the model was asked again", f"{where}, Gemini", len(asked))
    body = asked[-1]["body"]
    speeches = speeches_of("gemini", body.get("systemInstruction") or "", body["contents"])
    _judge(faults(speeches, _expected(play, 0)), f"{where}, Gemini's wire", outcome)
    outcome.expect(not _calls(turn), "a tool was called", f"{where}, Gemini", turn)

    target.openai.script(play.text("reply"))
    before = len(target.openai.chats)
    turn = http.post(f"{path}/chat", json={"content": "And now?", "model": OPENAI_MODEL}).raise_for_status().json()
    play.sent += [{"role": "user", "content": "And now?"}, {"role": "assistant", "content": play.text("reply")}]
    asked_openai = target.openai.chats[before:]
    outcome.expect(len(asked_openai) == 1, "the model was asked again", f"{where}, OpenAI", len(asked_openai))
    speeches = speeches_of("responses", asked_openai[-1].body.get("instructions") or "", asked_openai[-1].input)
    _judge(faults(speeches, _expected(play, 0)), f"{where}, OpenAI's wire", outcome)
    outcome.expect(not _calls(turn), "a tool was called", f"{where}, OpenAI", turn)


def _calls(turn: Json) -> bool:
    return any(part.get("type") == "tool_call" for message in turn.get("messages", ()) for part in message["parts"])


def _originals(http: httpx.Client, path: str, play: Play, created: Json, where: str, outcome: Outcome) -> None:
    messages = http.get(f"{path}/messages", params={"limit": PAGE}).raise_for_status().json()["data"]
    kept = [(one["role"], one["content"], one["parts"]) for one in messages]
    sent = [(one["role"], one["content"], one.get("parts", [])) for one in play.sent]
    outcome.expect(kept == sent, "not told as it was said", where, _difference(kept, sent))
    shown = http.get(path).raise_for_status().json()
    for name in ("title", "metadata", "scratchpad", "system_prompt"):
        outcome.expect(shown[name] == created[name], "not told as it was given", f"{where}, {name}", shown[name])


def _difference(kept: Sequence[Any], sent: Sequence[Any]) -> str:
    return next((f"{a} is not {b}" for a, b in zip(kept, sent, strict=False) if a != b), f"{len(kept)}, {len(sent)}")


def _judge(found: Sequence[str], where: str, outcome: Outcome) -> None:
    outcome.counts["contexts looked at"] += 1
    outcome.expect(not found, "structure", where, "; ".join(found))
