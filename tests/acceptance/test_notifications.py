"""Words for the user before and after a compaction: on the event stream, and in the stream of the turn itself."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, until
from tests.acceptance.talk import WINDOW, Json, Talk, read_events, text_of
from tests.gemini_server import Gemini


def notifications(talk: Talk, language: str | None = None) -> dict[str, Json | None]:
    """What each type of event said, up to the end of the first compaction."""
    found: dict[str, Json | None] = {}
    headers = {"Accept-Language": language} if language else {}
    with talk.http.stream("GET", talk.path("/events"), headers=headers) as response:
        for event in read_events(response):
            found[event.type] = event.data["notification"]
            if event.type == "compaction.applied":
                return found
    raise AssertionError("the stream ended before the compaction")


@pytest.mark.daily(1)
@pytest.mark.parametrize("wanted", ["before_and_after", "summary", "events"])
def test_words_before_and_after(offline: Service, start_talk: StartTalk, wanted: str) -> None:
    talk = start_talk(offline, policy={**WINDOW, "notifications": wanted}, locale="ru")
    talk.fill(2_300)
    (row,) = talk.wait_ended(1)
    said = notifications(talk)
    assert said["message.created"] is None
    before, after = said["compaction.started"], said["compaction.applied"]
    assert (before is not None, after is not None) == (wanted == "before_and_after", wanted != "events")
    if before:
        assert before["title"] == "Сжимаю беседу"
    if after:
        assert (after["level"], after["title"], after["locale"]) == ("info", "Беседа сжата", "ru")
        assert after["message"].startswith("Контекст заполнен на 70 % или больше: ")
        assert f"{row['messages_covered']} сообщени" in after["message"]
        english = notifications(talk, "en-GB")["compaction.applied"]
        assert english is not None
        assert english["message"].startswith("Context at 70 % or more: ")


@pytest.mark.long
@pytest.mark.parametrize("wanted", ["before_and_after", "summary", "events"])
def test_words_in_the_stream_of_the_turn_that_compacts(offline: Service, start_talk: StartTalk, wanted: str) -> None:
    talk = start_talk(offline, policy={**WINDOW, "notifications": wanted}, locale="ru")
    talk.fill(2_000)
    events = talk.streamed(text_of(750))
    said = {event.type: event.data["notification"] for event in events if event.type.startswith("compaction.")}
    before, after = said["compaction.started"], said["compaction.applied"]
    assert (before is not None, after is not None) == (wanted == "before_and_after", wanted != "events")
    assert notifications(talk)["compaction.applied"] == after, "the same words as on the event stream"
    assert notifications(talk)["compaction.started"] == before
    assert all("notification" not in event.data for event in events if not event.type.startswith("compaction."))
    if after:
        assert (after["level"], after["title"], after["locale"]) == ("info", "Беседа сжата", "ru")
        assert after["message"].startswith("Заранее, перед вызовом модели, при 85 % и больше: ")


@pytest.mark.long
def test_the_stream_speaks_the_language_that_is_accepted(offline: Service, start_talk: StartTalk) -> None:
    talk = start_talk(offline, policy={**WINDOW, "notifications": "before_and_after"}, locale="ru")
    talk.fill(2_000)
    events = {event.type: event.data for event in talk.streamed(text_of(750), accept_language="en-GB,en;q=0.9")}
    before, after = (events[f"compaction.{when}"]["notification"] for when in ("started", "applied"))
    assert (before["title"], after["title"]) == ("Compressing the conversation", "Conversation compressed")
    row = events["reply.completed"]["compaction"]
    saved = row["tokens_before"] - row["tokens_after"]
    assert after["message"].endswith(f"{row['messages_covered']} messages summarised, {saved:,} tokens saved.")


@pytest.mark.long
def test_a_failure_is_told_in_the_stream(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    talk = start_talk(gemini_service, policy={**WINDOW, "notifications": "before_and_after"})
    talk.fill(2_000)
    gemini.script("compaction", default="safety")
    events = {event.type: event.data for event in talk.streamed(text_of(750))}
    assert events["compaction.failed"]["notification"]["level"] == "warning"
    assert events["compaction.started"]["notification"]["level"] == "info"


@pytest.mark.long
def test_that_it_begins_is_told_while_it_runs(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    talk = start_talk(gemini_service, policy={**WINDOW, "notifications": "before_and_after"})
    talk.fill(2_000)
    gemini.script("compaction", {"name": "honest", "hold": True})
    with talk.streaming(text_of(750)) as events:
        assert [next(events).type, next(events).type] == ["message.created", "compaction.started"]
        until(lambda: gemini.requests("compaction"), what="the call")
        assert talk.in_flight() == 1, "nothing has come of it yet"
        gemini.release()
        assert next(events).type == "compaction.applied"
