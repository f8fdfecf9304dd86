"""A Russian conversation from its first message to its export: every model and person who reads it reads Russian.

All that the user, the tools and the operator say here is without a Latin letter, or counts as given: whatever else is
in Latin letters is ours, and stands in ``FIXED`` with its reason, or is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet
from typer.testing import CliRunner

from app.cli import app
from app.core.model.policies.resolving import PRESETS
from app.core.model.schemas import SCHEMAS
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import EventFollower, Json, Talk, good
from tests.acceptance.test_preset_turn_end import ROOMS, russian
from tests.gemini_server import Gemini

FIXED: Final[Mapping[str, str]] = {
    "Understood": "the acknowledgement of the served pair, word for word in the published design and in the engine's",
    "GOOGLE_API_KEY": "the name of a setting",
    "UTC": "the international name of the time in an export",
    "interrupted": "the stub of a call without a result: a word of the contract, which models of every language know",
    "earlier": "the reserved marker of all segments",
    "anchors": "the reserved marker of all anchors, and a tag",
    "segment_id": "the name of a marker's part, an argument of a tool",
    "expand_context": "the name of a tool",
    "search_history": "the name of a tool",
    "session_state": "a tag",
    "digests": "a tag",
    "compact": "a command",
    **dict.fromkeys(
        ("user", "assistant", "pasted", "by"), "whose words an anchor quotes: roles by their names in the contract"
    ),
    **dict.fromkeys(("query", "limit", "marker", "level", "after"), "arguments of tools"),
    "REDACTED": "the mark of a secret, where a model repeats it as a word",
    **dict.fromkeys(("full", "detailed", "brief", "tags"), "levels by their names in the contract"),
    **dict.fromkeys(("L0", "L1", "L2", "L3"), "levels, as markers name them"),
    **dict.fromkeys(
        ("commitment", "decision", "unresolved_question", "critical_fact", "correction"),
        "types of anchors by their names in the contract",
    ),
    **dict.fromkeys(
        (field.name for schema in SCHEMAS.values() for field in schema.fields),
        "fields of the state by their names in the contract",
    ),
}
WITH_GEMINI: Final = frozenset({"semantic"})
WITHOUT_A_MODEL: Final = frozenset({"turn_end"})
"""The presets of every day; in the long runs each preset is tried with a model and without."""
WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
FRAME: Final = re.compile(r"</?[a-z_]+|\b[a-z_]+=(?=\")|(?<=role=)\"[a-z]+\"|\\u[0-9a-f]{4}|\[REDACTED:\w+\]")
"""Names of tags and of their attributes, the API's roles in them, escaped characters, and marks of secrets."""
ENUMS: Final = frozenset(
    {
        "event_type",
        "role",
        "type",
        "id",
        "tool_call_id",
        "tool_use_id",
        "name",
        "call_id",
        "mimeType",
        "media_type",
        "level",
        "thoughtSignature",
    }
)
"""Members whose values are words of the contract or of the provider, and no prose."""
SMALL: Final[Json] = {"context_window": 4_000, "notifications": "before_and_after"}
ROOMY: Final[Json] = {"hierarchical": {"anchor_share": 0.15}}
"""Enough room: nearly every message of these talks is an anchor, and this design gives up if they do not fit."""
PHOTO: Final = {"type": "media", "media_type": "image/png", "url": "https://example.org/plan.png"}
WEATHER: Final = {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"город": "Рига"}}
ANSWER: Final = {"type": "tool_result", "tool_call_id": "call_1", "content": {"ответ": "ясно, 21 градус"}}
LOST: Final = {"type": "tool_call", "id": "call_2", "name": "weather", "arguments": {"город": "Псков"}}
GIVEN: Final = frozenset({"image", "png", "https", "example", "org", "plan", "weather", "call_1", "call_2"})


def often(preset: str, is_everyday: bool) -> ParameterSet:  # noqa: FBT001 - one word more at each call
    """A variant for every day, or for the long runs only."""
    return pytest.param(preset, marks=[] if is_everyday else pytest.mark.long)


def texts(value: Any, name: str = "") -> Iterator[str]:
    """Every text that somebody reads, wherever it is."""
    if isinstance(value, str):
        yield from [] if name in ENUMS else [value]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, name)


def latin(read: Any) -> dict[str, str]:
    """Words in Latin letters that are neither given nor fixed, each with its place."""
    found: dict[str, str] = {}
    for text in texts(read):
        plain = FRAME.sub(" ", text)
        for match in WORD.finditer(plain):
            if match[0] not in FIXED and match[0].lower() not in GIVEN:
                found[match[0]] = plain[max(match.start() - 60, 0) : match.end() + 60]
    return found


def told(talk: Talk) -> None:
    """A conversation with all kinds of parts, long enough to be compacted automatically."""
    talk.batch(russian(8))
    talk.append("Посмотри на план.", parts=[PHOTO])
    talk.append("", role="assistant", parts=[WEATHER])
    talk.append("", role="tool", parts=[ANSWER])
    talk.append("", role="assistant", parts=[LOST])
    erased = talk.append("Это сообщение я потом удалю.")
    good(talk.http.delete(talk.path(f"/messages/{erased['id']}")))
    talk.append("Пароль от сервера: Ястреб-4417-Кедр, никому его не говори.")
    talk.batch(russian(36, start=8)[1:])
    talk.wait_idle()


def looked_at(talk: Talk) -> dict[str, Any]:
    """Everything in it that a model or a person may read, by what it is."""
    query = "Какие лампы я заказал для комнаты 7?"
    passages = [{"text": "Лампы привезли вчера.", "source": "журнал склада"}]
    found: dict[str, Any] = {}
    for format_ in ("plain", "openai", "gemini", "anthropic"):
        found[f"context in {format_}"] = _sent(talk.get("/context", format=format_))
        asked = {"format": format_, "query": query, "passages": passages}
        found[f"context in {format_} with a question"] = _sent(good(talk.post("/context", asked)))
        found[f"narrow context in {format_}"] = _sent(talk.get("/context", format=format_, budget=700, query=query))
    for segment in talk.pages("/segments")[:4]:
        for level in ("full", "detailed", "brief", "tags"):
            shown = talk.get(f"/segments/{segment['segment_id']}", level=level)
            found[f"{level} {segment['segment_id']}"] = [shown["topic"], shown["content"]]
    found["summaries"] = [row["summary"] or "" for row in talk.compactions()]
    stats = talk.get("/stats")
    found["labels"] = [*stats["labels"].values(), *(one["label"] for one in _labelled(stats))]
    found["history"] = [message["content"] for message in talk.history()]
    found["export"] = talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
    found["search"] = [hit["snippet"] for hit in talk.get("/search", q="настольные лампы")["data"]]
    return found


def _sent(context: Json) -> list[Any]:
    return [context["messages"], context.get("system") or ""]


def _labelled(value: Any) -> Iterator[Json]:
    if isinstance(value, Mapping):
        if isinstance(value.get("label"), str):
            yield dict(value)
        for item in value.values():
            yield from _labelled(item)
    elif isinstance(value, list):
        for item in value:
            yield from _labelled(item)


def words_of(events: list[Json]) -> list[str]:
    """The words of events for a user."""
    told = [event["notification"] for event in events if event["notification"]]
    assert all(one["locale"] == "ru" for one in told)
    return [one[name] for one in told for name in ("title", "message")]


@pytest.mark.long
@pytest.mark.parametrize("preset", [often(preset, preset in WITHOUT_A_MODEL) for preset in PRESETS])
def test_without_a_model(offline: Service, start_talk: StartTalk, preset: str) -> None:
    policy = SMALL | ROOMY.get(preset, {})
    talk = start_talk(offline, preset=preset, locale="ru", title="Кабинеты", system_prompt=ROOMS, policy=policy)
    with EventFollower(talk) as feed:
        told(talk)
        streamed = talk.streamed("Сколько стоят жалюзи для комнаты 2?")
        talk.chat("Решено: лампы берём у «Кедра». Спасибо!")
        talk.compact()
        talk.batch(russian(10, start=50))
        talk.wait_idle()
        talk.chat("/compact лампы и жалюзи")
        talk.chat("/compact")
        talk.chat("Привет!")
        talk.batch(russian(30, start=70))
        talk.wait_idle()
        feed.wait_for(lambda events: len(words_of(events)) > 2)
        read = looked_at(talk) | {"notifications": words_of(feed.events)}
    read["stream"] = [event.data.get("text", "") for event in streamed]
    rows = talk.compactions()
    assert any(row["status"] == "applied" for row in rows), "or there is nothing to read"
    wrong = {where: found for where, one in read.items() if (found := latin(one))}
    assert wrong == {}


def calling(name: str, **arguments: Any) -> Json:
    return {"name": "calls", "calls": [{"name": name, "args": arguments}]}


def saying(text: str) -> Json:
    return {"name": "text", "text": text}


@pytest.mark.long
@pytest.mark.parametrize("preset", [often(preset, preset in WITH_GEMINI) for preset in PRESETS])
def test_with_gemini(gemini_service: Service, start_talk: StartTalk, gemini: Gemini, preset: str) -> None:
    policy = {**SMALL, **ROOMY.get(preset, {}), "context_window": 16_000}
    talk = start_talk(gemini_service, preset=preset, locale="ru", system_prompt=ROOMS, policy=policy)
    told(talk)
    talk.batch(russian(60, start=60))
    talk.wait_idle()
    talk.compact()
    named = talk.pages("/segments")[0]["segment_id"]
    gemini.script(
        "chat",
        calling("search_history", query="лампы", limit=2),
        calling("search_history", query="дирижабль"),
        calling("search_history", query=" "),
        calling("expand_context", marker=named, level="full"),
        calling("expand_context", marker="никто", level="full"),
        calling("expand_context", marker=named, level="вполне"),
        calling("летать", куда="домой"),
        saying("Лампы стоят по 111 евро."),
        replace=True,
    )
    done = talk.chat("Что с лампами?")
    assert done["reply"]["content"] == "Лампы стоят по 111 евро."
    sent = [one["body"] for one in gemini.requests("chat")]
    assert {tool["name"] for tool in sent[0]["tools"][0]["functionDeclarations"]} >= {"search_history"}
    read = looked_at(talk) | {
        "results": [part for message in talk.history() for part in message["parts"] if part["type"] == "tool_result"],
        "instructions": [body["systemInstruction"] for body in sent],
        "contents": [body["contents"] for body in sent],
        "tools": [tool["description"] for body in sent for tool in body["tools"][0]["functionDeclarations"]],
    }
    wrong = {where: found for where, one in read.items() if (found := latin(one))}
    assert wrong == {}
    results = [part["content"] for part in read["results"] if part["content"]]
    assert "Подходящих сообщений нет. Попробуй другие слова или меньше слов." in results


@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_has_a_russian_title(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, *, streams: bool
) -> None:
    talk = start_talk(gemini_service, locale="ru")
    refused = talk.post("/chat", {"content": "   "}, Accept_Language="ru-RU,ru;q=0.9,en;q=0.8").json()
    assert (refused["code"], refused["title"]) == ("invalid_input", "Неверные данные")
    assert talk.post("/chat", {"content": "   "}).json()["title"] == "Invalid input"
    gemini.script("chat", default="error_400")
    if streams:
        problem = talk.streamed("Привет!", Accept_Language="ru")[-1].data
    else:
        problem = talk.post("/chat", {"content": "Привет!"}, Accept_Language="ru").json()
    assert (problem["code"], problem["title"]) == ("model_unavailable", "Модель недоступна")


TYPED: Final = frozenset(
    {"limit", "messages", "max", "tokens", "THROUGHLINE_COMPACTION_MODEL", "offline", "session", "UTF"}
)
"""Names that the command line shows as they are typed, and the name of the state's schema."""


@pytest.mark.long
def test_the_command_line_in_a_russian_terminal(
    offline: Service, start_talk: StartTalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*argv: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*argv, "--url", offline.url])
        assert done.exit_code == code, done.output
        return done.output.replace(str(tmp_path), "").replace(offline.url, "")

    monkeypatch.setenv("LANG", "ru_RU.UTF-8")
    talk = start_talk(offline, locale="ru", title="Кабинеты", policy={**SMALL, "max_tokens": -1})
    told(talk)
    bad, good_ = tmp_path / "плохо", tmp_path / "беседа"
    bad.write_text('{"messages": [7]}', encoding="utf-8")
    read = {
        "dry": run("compact", talk.id, "--dry-run"),
        "compact": run("compact", talk.id),
        "again": run("compact", talk.id),
        "list": run("list", "--limit", "1"),
        "context": run("context", talk.id, "--budget", "700", "--query", "Сколько стоят жалюзи?", "--full"),
        "state": run("state", talk.id),
        "difference": run("state", talk.id, "--diff", "1", "1"),
        "stats": run("stats", talk.id),
        "stats of all": run("stats"),
        "doctor": run("doctor", talk.id),
        "restore": run("restore", talk.id, "0"),
        "restored": run("restore", talk.id, "1"),
        "export": run("export", talk.id, "--output", str(good_)),
        "import": run("import", str(good_)),
        "no state": run("state", talk.id, "--version", "99", code=2),
        "no id": run("context", "никто", code=2),
        "no segment": run("expand", talk.id, "нет такого", code=2),
        "unknown segment": run("expand", talk.id, "никто", code=2),
        "bad file": run("import", str(bad), code=2),
        "which": run("doctor", code=2),
    }
    for segment in talk.pages("/segments")[:2]:
        for level in ("full", "brief"):
            read[f"{level} {segment['segment_id']}"] = run("expand", talk.id, segment["segment_id"], "--level", level)
    wrong = {
        where: left
        for where, one in read.items()
        if (
            left := {
                word: place for word, place in latin(_typed(one)).items() if word not in TYPED and word not in PRESETS
            }
        )
    }
    assert wrong == {}
    assert "сообщений (1–" in read["compact"]
    monkeypatch.setenv("LANG", "C.UTF-8")
    cyrillic = re.compile("[А-я]")
    assert not cyrillic.search(run("stats", talk.id)), "a Russian conversation in an English terminal"
    assert cyrillic.search(read["stats"]), "control"


def _typed(shown: str) -> str:
    """The text without ids, codes in brackets at a line's end, and options."""
    return re.sub(
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\([a-z_]+\)$|--[a-z-]+|`[^`]*`", " ", shown, flags=re.MULTILINE
    )
