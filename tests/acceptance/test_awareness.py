"""What the chat model is told about its memory is exactly what it is served, under every preset."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from app.core.model.policies.resolving import PRESETS
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import Json, Talk, text_of
from tests.gemini_server import Gemini

PROMPT: Final = "You are kind."
SAID: Final = (
    ("user", "We decided to order the oak tables from Kedr for 4,250 euros, not the pine ones."),
    ("assistant", "I will send the invoice to Kedr by Friday."),
    ("user", "Actually, the deadline is 14 May 2027, not 3 May."),
)
FILLER: Final = [(("user", "assistant")[number % 2], text_of(40 + number)) for number in range(40)]
"""A policy under which nothing is kept word for word."""
ARROW: Final = re.compile(r"→(L\d):")


def told(talk: Talk) -> str:
    """The awareness block of the system prompt."""
    first = talk.context()["messages"][0]
    assert first["role"] == "system"
    text: str = first["content"]
    return text.removeprefix(PROMPT)


def block(talk: Talk) -> str:
    """The state block."""
    (found,) = (item["content"] for item in talk.context()["messages"] if item["content"].startswith("<session_state>"))
    return str(found)


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("preset", "locale"),
    [
        pytest.param(preset, locale, marks=() if (number + (locale == "ru")) % 2 else pytest.mark.long)
        for number, preset in enumerate(PRESETS)
        for locale in ("en", "ru")
    ],
)
def test_it_tells_of_what_is_served(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, preset: str, locale: str
) -> None:
    talk = start_talk(gemini_service, preset=preset, locale=locale, system_prompt=PROMPT)
    awareness = told(talk)
    talk.batch([*SAID, *FILLER])
    talk.compact(keep_tail_messages=0)
    served, policy = block(talk), talk.get()["policy"]
    assert told(talk) == awareness, "it is there from the first turn, and stays"

    for element in ("anchors", "digests"):
        assert (f"`<{element}>`" in awareness) == (f"<{element}>" in served), element
    assert ("<anchors>" in served) == (policy["anchor_share"] != 0)
    assert ("<digests>" in served) == bool(policy["levels"])

    state: Json = json.loads(served.splitlines()[1])
    fields = set(re.findall(r"`(\w+)`", awareness)) - {"expand_context"}
    assert fields <= set(state)
    assert fields or len(state) == 1, "of several fields it says how some are used"

    markers = {level for level in ARROW.findall(served) if level != "L3"}
    assert set(ARROW.findall(awareness)) == markers, "an example of the very kind"

    talk.chat("Which tables was it?")
    body = gemini.requests("chat")[-1]["body"]
    offered = {one["name"] for tool in body["tools"] for one in tool["functionDeclarations"]}
    assert ("expand_context" in awareness) == ("expand_context" in offered)
    assert "search_history" in offered, "under every preset; its own words say what it does"


def test_the_words_follow_a_change_of_the_policy(gemini_service: Service, start_talk: StartTalk) -> None:
    talk = start_talk(gemini_service, preset="semantic", system_prompt=PROMPT)
    assert "`<anchors>`" in told(talk)
    assert "`<digests>`" in told(talk)
    assert talk.patch({"policy": {"anchor_share": 0, "levels": []}}).is_success
    assert "anchors" not in told(talk)
    assert "digests" not in told(talk)
    assert "expand_context" not in told(talk)
