"""Words for the user on the event stream: before and after a compaction, in the language of the conversation."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import WINDOW, Json, Talk, read_events


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
