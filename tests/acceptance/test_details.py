"""A segment's detailed level: made by code at once, by the model soon after, with or without broker and worker."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import StartService, StartTalk, gemini_settings
from tests.acceptance.service import Service, until
from tests.acceptance.talk import MANUAL, Json, Talk, lines
from tests.gemini_server import Gemini

BY_TWENTY: Json = {**MANUAL, "segment_by": {"by": "messages", "size": 20}}
EXTRACTIVE = "extractive"


def detailed(talk: Talk) -> list[Json]:
    """Every segment at its detailed level."""
    listed: list[Json] = talk.get("/segments", level="detailed")["data"]
    return listed


def makers(talk: Talk) -> set[str]:
    return {str(segment["made_by"]) for segment in detailed(talk)}


@pytest.mark.long
def test_the_worker_has_the_model_write_it(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
    gemini.script("detail", default={"name": "honest", "hold": True})
    talk = start_talk(gemini_service, policy=BY_TWENTY)
    talk.batch(lines(60))
    talk.compact()
    gemini.wait_for("detail")
    assert makers(talk) == {EXTRACTIVE}
    context = talk.context_bytes()

    talk.batch(lines(40, start=100))
    assert talk.compact()["status"] == "applied", "nobody waits for it"
    between = talk.context_bytes()
    assert between != context
    gemini.script("detail", default="honest")
    gemini.release()
    until(lambda: EXTRACTIVE not in makers(talk), 60, what="every detailed level by the model")
    assert talk.context_bytes() == between, "what is served stays as it is"


@pytest.mark.long
def test_what_the_model_may_not_say_leaves_the_one_by_code(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini
) -> None:
    gemini.script("detail", default="please_provide")
    talk = start_talk(gemini_service, policy=BY_TWENTY)
    talk.batch(lines(60))
    talk.compact()
    before = detailed(talk)
    gemini.wait_for("detail", 2)
    assert makers(talk) == {EXTRACTIVE}
    assert [segment["content"] for segment in detailed(talk)] == [segment["content"] for segment in before]


@pytest.mark.long
def test_without_a_worker_and_a_broker_it_is_written_all_the_same(
    start_service: StartService, start_talk: StartTalk, gemini: Gemini
) -> None:
    service = start_service(worker=False, redis_url="redis://127.0.0.1:1/0", **gemini_settings(gemini))
    talk = start_talk(service, policy=BY_TWENTY)
    talk.batch(lines(60))
    talk.compact()
    until(lambda: EXTRACTIVE not in makers(talk), 60, what="every detailed level by the model")
