"""A live context: when a response becomes one, and what it is sent next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.context.assembly import AssembledContext, ContextInputs
from app.core.context.live_context import calls_in, live_context_addition
from app.core.model.conversation import Conversation, LiveContext, Message
from app.core.model.live_context import SentConversation, live_context_after, sent_conversation
from app.core.retrieval.rendering import Passage
from tests.builders import CONVERSATION, START, TENANT, material, message, policy_of

EARLIER = LiveContext(model="maker:model", response_id="resp_1", through_seq=4)
NEWEST = LiveContext(model="maker:model", response_id="resp_2", through_seq=6)
POLICY = policy_of(context_window=4_000)


def conversation(**changes: Any) -> Conversation:
    """A conversation of five messages, of which the provider has four; a state covers the third."""
    values: dict[str, Any] = {"last_seq": 5, "boundary_seq": 3, "content_epoch": 1, "live": EARLIER}
    return Conversation(id=CONVERSATION, tenant_id=TENANT, created_at=START, updated_at=START, **(values | changes))


class TestAResponse:
    def test_that_follows_on_what_was_sent_is_gone_on_from(self) -> None:
        before = conversation()
        assert live_context_after(replace(before, last_seq=6), sent_conversation(before), NEWEST) == NEWEST

    @pytest.mark.parametrize("earlier", [None, EARLIER])
    def test_the_first_one_is_too(self, earlier: LiveContext | None) -> None:
        before = conversation(live=earlier)
        assert live_context_after(before, sent_conversation(before), NEWEST) == NEWEST

    def test_after_a_compaction_meanwhile_it_is_too(self) -> None:
        before = conversation()
        assert live_context_after(replace(before, boundary_seq=5), sent_conversation(before), NEWEST) == NEWEST

    @pytest.mark.parametrize("earlier", [None, EARLIER])
    def test_is_not_where_something_was_appended_before_it(self, earlier: LiveContext | None) -> None:
        before = conversation(live=earlier)
        later = replace(NEWEST, through_seq=7)
        assert live_context_after(replace(before, last_seq=7), sent_conversation(before), later) == earlier

    @pytest.mark.parametrize("change", [{"content_epoch": 2}, {"boundary_seq": 2}, {"live": None}])
    def test_is_not_where_something_was_taken_back_meanwhile(self, change: dict[str, Any]) -> None:
        """After an erasure or a restore, a live context that was given up is not taken up again."""
        before = conversation()
        present = replace(before, **change)
        assert live_context_after(present, sent_conversation(before), NEWEST) == present.live

    @given(st.lists(st.sampled_from(["turn", "append", "appended meanwhile", "broken off", "erase"]), max_size=30))
    def test_holds_at_any_time_what_the_history_says_up_to_its_message(self, events: list[str]) -> None:
        """The provider is simulated in four lines: what a request continues, then what is sent, then the answer."""
        history: list[str] = []
        kept: dict[str, list[str]] = {}
        row = conversation(last_seq=0, boundary_seq=0, content_epoch=0, live=None)

        def stored(text: str) -> int:
            nonlocal row
            history.append(text)
            row = replace(row, last_seq=len(history))
            return len(history)

        for number, event in enumerate(events):
            if event == "append":
                stored(f"appended {number}")
            elif event == "erase" and history:
                history[0] = f"erased {number}"
                row = replace(row, live=None, content_epoch=row.content_epoch + 1)
            elif event != "erase":
                stored(f"asked {number}")
                sent = sent_conversation(row)
                told = [*kept.get(sent.live.response_id, []), *history[sent.live.through_seq :]] if sent.live else []
                whole = told or list(history)
                if event == "appended meanwhile":
                    stored(f"meanwhile {number}")
                seq = stored(f"answer {number}")
                if event != "broken off":
                    response = LiveContext(model="m", response_id=f"resp_{number}", through_seq=seq)
                    kept[response.response_id] = [*whole, history[-1]]
                    row = replace(row, live=live_context_after(row, sent, response))
            if row.live is not None:
                assert kept[row.live.response_id] == history[: row.live.through_seq]


def since(messages: Sequence[Message], policy: Any = POLICY, **changes: Any) -> ContextInputs:
    """The material of a conversation that begins with the first of these messages."""
    made = material(messages, policy=policy, system_prompt="Be kind.")
    return replace(made, **changes)


def told(source: ContextInputs, *passages: Passage) -> AssembledContext:
    found = live_context_addition(source, passages)
    assert found is not None
    return found


class TestWhatItIsTold:
    def test_is_the_system_prompt_and_what_came(self) -> None:
        found = told(since([message(5, "A broken", "assistant", status="interrupted"), message(6, "Go on.", "user")]))
        assert [(one.role, one.seq) for one in found.messages] == [("system", None), ("assistant", 5), ("user", 6)]
        assert found.messages[0].content.startswith("Be kind.")
        assert found.warnings == ()

    def test_leaves_out_what_says_nothing(self) -> None:
        messages = [
            message(5, "", "assistant", status="interrupted"),
            message(6, "/compact", "user", is_command=True),
            message(7, "", "user", status="erased"),
            message(8, "Go on.", "user"),
        ]
        assert [one.seq for one in told(since(messages)).messages] == [None, 8]

    def test_passages_stand_before_the_last_words_of_the_user(self) -> None:
        found = told(since([message(5, "What of it?")]), Passage(text="The quay is closed.", source="news"))
        assert "The quay is closed." in found.messages[-1].content
        assert found.messages[-1].content.endswith("What of it?")

    def test_passages_without_room_are_left_out_and_nothing_else(self) -> None:
        messages = [message(5, "word " * 2_200)]
        found = told(since(messages), Passage(text="quay " * 9_000, source="news"))
        assert found.messages[-1].content == messages[0].content
        assert found.warnings == ("passages_left_out:1",)

    @pytest.mark.parametrize("on_failure", ["truncate", "keep_full"])
    def test_what_exceeds_what_may_be_sent_is_not_told_at_all(self, on_failure: str) -> None:
        policy = policy_of(context_window=4_000, on_failure=on_failure)
        assert live_context_addition(since([message(5, "word " * 9_000), message(7, "Go on.")], policy)) is None

    def test_nor_is_what_could_not_be_loaded(self) -> None:
        assert live_context_addition(since([message(5, "Go on.")], unloaded_tokens=1)) is None


def test_the_calls_of_a_message() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "x", "arguments": {}}
    assert calls_in(message(5, "Let me see.", "assistant", parts=[{"type": "text", "text": "x"}, call])) == (call,)
    assert calls_in(message(5, "No.", "assistant")) == ()


def test_a_request_knows_what_it_was_made_of() -> None:
    assert sent_conversation(conversation()) == SentConversation(
        through_seq=5, content_epoch=1, boundary_seq=3, live=EARLIER
    )
