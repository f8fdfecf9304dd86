"""How much of a history that a client sends again is already stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.core.context.newest_messages import newest_within
from app.core.context.reconciling import Reconciliation, lines_of
from app.core.model.conversation import Message
from app.core.model.model_io import ContextMessage
from app.core.text.speakers import name_in
from app.usecases.openai.conversation_names import ConversationName, derived_id
from tests.rows import each
from tests.unit.timing import assert_linear_in

ONE: Final = UUID("0193e000-0000-7000-8000-000000000001")
TWO: Final = UUID("0193e000-0000-7000-8000-000000000002")
AT: Final = datetime(2026, 11, 22, tzinfo=UTC)
CALL: Final = {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {}}
AGAIN: Final = {**CALL, "id": "call_2"}
OURS: Final = {"type": "tool_call", "id": "call_9", "name": "search_history", "arguments": {}}

Said = tuple[str, str] | tuple[str, str, dict[str, Any]]


def u(text: str) -> Said:
    return "user", text


def a(text: str, **fields: Any) -> Said:
    return "assistant", text, fields


def by(name: str, text: str, role: str = "user") -> Said:
    return role, text, {"metadata": {"name": name}}


def asked(question: str, text: str) -> Said:
    return "user", text, {"metadata": {"question_id": question}}


def made(call: dict[str, Any], text: str = "") -> Said:
    return "assistant", text, {"parts": (call,)}


def brought(call: dict[str, Any], content: str = "x") -> Said:
    part = {"type": "tool_result", "tool_call_id": call["id"], "name": call["name"], "content": content}
    return "tool", "", {"parts": (part,)}


def brought_with(media: dict[str, str]) -> Said:
    picture = {"type": "media", "media_type": "image/png", **media}
    return "tool", "", {"parts": (*_fields(brought(CALL))["parts"], picture)}


def shown(text: str, *media: dict[str, str]) -> Said:
    return "user", text, {"parts": tuple({"type": "media", "media_type": "image/png", **one} for one in media)}


def erased_step() -> Said:
    return "assistant", "", {"parts": (CALL,), "status": "erased"}


TWO_CALLS: Final[Said] = "assistant", "", {"parts": (CALL, OURS)}
ERASED: Final[Said] = "user", "", {"status": "erased"}
ERASED_REPLY: Final[Said] = a("", status="erased")
RED: Final = {"data": "cmVk"}
BLUE: Final = {"data": "Ymx1ZQ=="}
PLAIN: Final = {"url": "https://x.test/1"}
SIGNED: Final = {"url": "https://x.test/1?s=1"}
ANEW: Final = {"url": "https://x.test/1?s=2"}


def stored(history: Sequence[Said]) -> list[Message]:
    return [
        Message(id=ONE, conversation_id=ONE, seq=seq, role=said[0], content=said[1], created_at=AT, **_fields(said))  # type: ignore[arg-type]
        for seq, said in enumerate(history, 1)
    ]


def _fields(said: Said) -> dict[str, Any]:
    return said[2] if len(said) == 3 else {}


def compared(given: Sequence[Said], history: Sequence[Said], unanswered: Collection[int] = ()) -> Reconciliation:
    lines = [
        line
        for number, said in enumerate(given)
        for line in lines_of(
            said[0], said[1], _fields(said).get("parts", ()), number, name_in(_fields(said).get("metadata", {}))
        )
    ]
    reconciling = Reconciliation(lines, unanswered, frozenset({"search_history"}))
    reconciling.read(stored(history))
    return reconciling


OPENING: Final = [u("Hello"), a("Hi, how can I help?")]
REMINDER: Final = "<system-reminder>\nChange  nothing.\n\nThink.\n</system-reminder>"


@each(
    ("given", "history", "new"),
    [
        ([u("Hello")], [], 0),
        ([*OPENING, u("More")], OPENING, 2),
        ([u(" Hello\n"), a("Hi,  how can I help?"), u("More")], OPENING, 2),
        ([u("Cafe\u0301"), u("y")], [u("Café")], 1),
        # The service called its own tool: the client has both texts as one, or only the last.
        ([u("q"), a("I look.\n\nSunny."), u("y")], [u("q"), made(OURS, "I look."), brought(OURS), a("Sunny.")], 2),
        ([u("q"), a("Sunny."), u("y")], [u("q"), made(OURS, "I look."), brought(OURS), a("Sunny.")], 2),
        ([u("q"), a("I look. Again. Sunny."), u("y")],
         [u("q"), made(OURS, "I look."), brought(OURS), made(OURS, "Again."), brought(OURS), a("Sunny.")], 2),
        *(([u("q"), a(f"I look. {less}"), u("y")],
           [u("q"), made(OURS, "I look."), brought(OURS), made(OURS, "Again."), brought(OURS), a("Sunny.")], 2)
          for less in ("Ag", "Again.")),
        # OpenCode adds an element to the newest message for one request only: "plan, and change nothing".
        ([u("Plan."), a("I plan."), u("Build.")], [u(f"Plan.\n\n{REMINDER}"), a("I plan.")], 2),
        ([u("Plan.\n\nWell."), a("I plan."), u("Build.")],
         [u(f"Plan.\n\n\n\nWell.\n\n{REMINDER}"), a("I plan.")], 2),
        ([u("Plan."), u("Build.")], [u(f"Plan.\n\n{REMINDER}"), a("I pl", status="interrupted")], 1),
        # The client's own tools.
        ([u("q"), made(CALL), brought(CALL)], [u("q"), made(CALL)], 2),
        ([u("q"), made(CALL), brought(CALL, "y"), a("End"), u("y")], [u("q"), made(CALL), brought(CALL), a("End")], 4),
        # The client stopped reading: it has less of the reply, whatever became of that here.
        ([u("q"), a("It is"), u("y")], [u("q"), a("It is sunny")], 2),
        ([u("q"), a("I look.\n\nSun"), u("y")], [u("q"), made(OURS, "I look."), brought(OURS), a("Sunny.")], 2),
        ([u("q"), a("Sunny."), u("y")], [u("q"), made(OURS, "Sunny. I look."), brought(OURS), a("Sunny.")], 2),
        ([u("q"), a("I look."), u("y")], [u("q"), made(OURS, "I look."), brought(OURS), a("Sunny.")], 2),
        ([u("q"), a("I look."), u("y")], [u("q"), made(OURS, "I look."), brought(OURS)], 2),
        ([u("q"), a("I look."), u("On"), a("Yes."), u("y")],
         [u("q"), made(OURS, "I look."), brought(OURS), a("Sunny."), u("On"), a("Yes.")], 4),
        # The reply was stopped here: the client has a part of it, or nothing.
        ([u("q"), a("It is"), u("y")], [u("q"), a("It is sunny", status="interrupted")], 2),
        ([u("q"), u("y")], [u("q"), a("It is sunny", status="interrupted")], 1),
        # The reply was made again: the new one counts, and may have the same text.
        ([u("q"), a("One."), u("y")], [u("q"), a("One.", status="superseded"), a("One.")], 2),
        ([u("q"), a("Two."), u("y")], [u("q"), a("One.", status="superseded"), a("Two.")], 2),
        ([u("q"), a("I look again.\n\nTwo."), u("y")],
         [u("q"), made(OURS, "I look."), brought(OURS), a("One.", status="superseded"),
          made(OURS, "I look again."), brought(OURS), a("Two.")], 2),
        # The client need not know typed commands, system messages and erased messages.
        ([*OPENING, u("y")], [*OPENING, ("user", "/compact", {"is_command": True}), a("Done.", is_command=True)], 2),
        ([u("/compact"), a("Done."), u("y")],
         [("user", "/compact", {"is_command": True}), a("Done.", is_command=True)], 2),
        ([*OPENING, u("y")], [("system", "Be brief."), *OPENING], 2),
        ([u("secret"), a("Hi"), u("y")], [("user", "", {"status": "erased"}), a("Hi")], 2),
        ([a("Hi"), u("y")], [("user", "", {"status": "erased"}), a("Hi")], 1),
        ([*OPENING, u("y")], [*OPENING, ERASED, ERASED_REPLY], 2),
        ([u("y")], [ERASED], 0),
        ([*OPENING, u("secret"), a("Yes."), u("y")], [*OPENING, ERASED, ERASED_REPLY], 4),
        ([*OPENING, u("On"), a("Yes."), u("y")], [*OPENING, ERASED, ERASED_REPLY, u("On"), a("Yes.")], 4),
        ([*OPENING, u("secret"), a("No."), u("On"), a("Yes."), u("y")],
         [*OPENING, ERASED, ERASED_REPLY, u("On"), a("Yes.")], 6),
        ([u("q"), a("Yes."), u("y")], [u("q"), ERASED_REPLY, ERASED, a("Yes.")], 2),
        # Of an erased step only the ids of its calls are left: the client still has its words, or never had any.
        *(([u("q"), made(CALL, text), brought(CALL), a("End"), u("y")],
           [u("q"), erased_step(), brought(CALL), a("End")], 4)
          for text in ("I look.", "")),
        ([u("q"), a("End"), u("y")], [u("q"), erased_step(), brought(CALL), a("End")], 2),
        # Results of one step may come in any order, in one message or in several.
        ([u("q"), TWO_CALLS, brought(OURS), brought(CALL), a("End"), u("y")],
         [u("q"), TWO_CALLS, brought(CALL), brought(OURS), a("End")], 5),
        ([u("q"), TWO_CALLS, brought(OURS), brought(CALL)], [u("q"), TWO_CALLS], 2),
        # A client joins the calls of several steps without words.
        ([u("q"), TWO_CALLS, brought(CALL), brought(OURS), a("End"), u("y")],
         [u("q"), made(CALL), brought(CALL), made(OURS), brought(OURS), a("End")], 5),
        ([u("q"), TWO_CALLS, brought(CALL), brought(OURS)], [u("q"), made(CALL), brought(CALL), made(OURS)], 3),
        # Names distinguish messages if both have one.
        ([by("Ann", "q"), by("Ben", "q"), by("Ben", "y")], [by("Ann", "q"), by("Ben", "q")], 2),
        ([by("Ann", "q"), by("Bot", "a", "assistant"), by("Ann", "y")], [by("Ann", "q"), a("a")], 2),
        ([by("Ann", "q"), u("y")], [u("q")], 1),
        ([u("q"), u("y")], [by("Ann", "q")], 1),
        ([by("Cafe\u0301", "q"), u("y")], [by("Café", "q")], 1),
        ([by("Ben", "secret"), a("Hi"), u("y")], [("user", "", {"status": "erased"}), a("Hi")], 2),
        # The client asked about its message again, with a hint, and shows the new reply in the place of the first.
        ([u("q"), a("Two."), u("y")], [asked("1", "q"), a("One."), asked("1", "Shorter"), a("Two.")], 2),
        ([u("q"), a("Two."), u("Shorter still")], [asked("1", "q"), a("One."), asked("1", "Shorter"), a("Two.")], 2),
        ([u("q"), a("Three."), u("y")],
         [asked("1", "q"), a("One."), asked("1", "Shorter"), a("Two."), asked("1", "Longer"), a("Three.")], 2),
        # The new reply is the beginning of the first, or the same; the first was stopped or erased.
        *(([u("q"), a("One."), u("y")], [asked("1", "q"), first, asked("1", "Shorter"), a("One.")], 2)
          for first in (a("One. Two."), a("One."), a("On", status="interrupted"), ERASED_REPLY)),
        # A client may leave out pictures that are stored, and sign their addresses anew.
        ([shown("q", RED), a("a"), u("y")], [shown("q", RED), a("a")], 2),
        ([u("q"), a("a"), u("y")], [shown("q", RED), a("a")], 2),
        ([shown("q", BLUE), a("a"), u("y")], [shown("q", RED, BLUE), a("a")], 2),
        *(([shown(text, ANEW), a("a"), u("y")], [shown(text, SIGNED), a("a")], 2) for text in ("q", "")),
        *(([shown(text, ANEW), made(CALL), brought(CALL)], [shown(text, SIGNED), made(CALL)], 2) for text in ("q", "")),
        ([shown("q", ANEW), brought(CALL)], [shown("q", SIGNED), made(CALL)], 1),
        ([u("q"), u("y")], [shown("q", SIGNED)], 1),
        ([shown("secret", RED), a("Hi"), u("y")], [("user", "", {"status": "erased"}), a("Hi")], 2),
    ],
)  # fmt: skip
def test_what_is_new(given: list[Said], history: list[Said], new: int) -> None:
    found = compared(given, history)
    assert (found.diverged, found.new_from) == (False, new)


@each(
    ("given", "history"),
    [
        ([u("### Task: make a title for <chat>Hello</chat>")], OPENING),
        ([u("Hallo"), OPENING[1], u("More")], OPENING),
        ([OPENING[0], a("Edited."), u("More")], OPENING),
        ([OPENING[0], a("how can I help?"), u("More")], OPENING),
        ([OPENING[0], a(""), u("More")], OPENING),
        ([u("q"), a("One."), u("y")], [u("q"), a("One.", status="superseded"), a("Two.")]),
        ([u("Hell"), OPENING[1], u("More")], OPENING),
        ([*OPENING, u("More")], [*OPENING, u("Other"), a("x")]),
        ([u("Hello"), u("More")], OPENING),
        ([u("q"), made(CALL), brought(CALL), u("y")], [u("q"), a("No calls.")]),
        (
            [u("q"), a("I look."), u("y")],
            [u("q"), made(OURS, "I look."), brought(OURS), a("Sunny."), u("On"), a("Yes.")],
        ),
        ([u("q"), made(CALL, "I look."), u("y")], [u("q"), made(CALL, "I look."), brought(CALL), a("Sunny.")]),
        # A step of the reply, or a part of one, is missing between others.
        *(
            (
                [u("q"), a(f"I look. {rest}"), u("y")],
                [u("q"), made(OURS, "I look."), brought(OURS), made(OURS, step), brought(OURS), a(last)],
            )
            for rest, step, last in (
                ("Sunny.", "Again.", "Sunny."),
                ("It is sunny.", "No.", "It is sunny."),
                ("Oh sunny.", "No", "sunny."),
            )
        ),
        ([u("q"), a("Two."), u("y")], [asked("1", "q"), a("One."), asked("2", "Shorter"), a("Two.")]),
        ([u("q"), a("Two."), u("y")], [u("q"), a("One."), u("Shorter"), a("Two.")]),
        ([u("q"), a("Two."), u("y")], [asked("1", "q"), a("One.")]),
        ([u("q"), a("One."), u("y")], [asked("1", "q"), a("One."), asked("1", "Shorter"), a("Two.")]),
        ([u("q"), a("One."), u("y")], [asked("1", "q"), a("One."), asked("1", "Shorter")]),
        ([u("q"), a("One.")], [asked("1", "q"), a("One."), asked("1", "Shorter")]),
        ([u("q")], [asked("1", "q"), a("One."), asked("1", "Shorter")]),
        ([by("Ben", "q"), u("y")], [by("Ann", "q")]),
        ([by("Ben", "q")], [by("Ann", "q"), a("End")]),
        ([u("q"), by("Two", "a", "assistant"), u("y")], [u("q"), by("One", "a", "assistant")]),
        ([shown("q", BLUE)], [shown("q", RED), a("a")]),
        ([shown("", {"url": "https://x.test/2"}), a("a"), u("y")], [shown("", SIGNED), a("a")]),
        # What is to be answered may be another picture.
        *(([shown(text, ANEW)], [shown(text, SIGNED), *more]) for text in ("q", "") for more in ([], [a("a")])),
        ([shown("q", RED, BLUE), a("a"), u("y")], [shown("q", RED), a("a")]),
        ([shown("q", RED), a("a"), u("y")], [u("q"), a("a")]),
        ([*OPENING, u("y")], [*OPENING, ERASED, a("Yes.")]),
        ([u("q"), TWO_CALLS, brought(OURS), brought(CALL)], [u("q"), TWO_CALLS, brought(CALL)]),
        ([u("q"), brought(OURS), u("y"), brought(CALL)], [u("q"), brought(CALL), u("y"), brought(OURS)]),
        ([*OPENING, u("Edited"), a("Yes."), u("y")], [*OPENING, ERASED, ERASED_REPLY, u("On"), a("Yes.")]),
        # What is to be answered is an edit; so is a text that its user has shortened.
        ([u("Plan.")], [u(f"Plan.\n\n{REMINDER}"), a("a")]),
        *(
            ([u(text), a("a"), u("y")], [u(f"Plan.\n\nAll of it.\n\n{REMINDER}"), a("a")])
            for text in ("Plan.", "Plan. All", "All of it.", "Pl")
        ),
        ([u("Plan."), a("a"), u("y")], [u("Plan.\n\nMy secret is <b>7</b>"), a("a")]),
        ([u("Plan."), a("a"), u("y")], [u(f"Plan.\n\n{REMINDER}\n\nMy secret.\n\n{REMINDER}"), a("a")]),
        (
            [u("Plan."), a("a"), u("y")],
            [("user", f"Plan.\n\n{REMINDER}", {"parts": ({"type": "text", "text": "And more."},)}), a("a")],
        ),
    ],
)
def test_an_edit_a_title_prompt_and_a_branch_are_other_histories(given: list[Said], history: list[Said]) -> None:
    found = compared(given, history)
    assert found.new_from is None
    assert not found.is_all_stored


@each(
    ("given", "history", "again"),
    [
        ([u("Hello")], OPENING, True),
        ([u("Hello")], [u("Hello"), a("Hi,", status="interrupted")], True),
        ([*OPENING, u("More")], [*OPENING, u("More"), made(OURS), brought(OURS), a("Yes.")], True),
        ([*OPENING, u("More")], [*OPENING, u("More"), a("No.", status="superseded"), a("Yes.")], True),
        ([*OPENING, u("On")], [*OPENING, ERASED, ERASED_REPLY, u("On"), a("Yes.")], True),
        ([u("Hello")], [u("Hello"), a("Hi,", status="superseded")], False),
        ([u("Hello")], [u("Hello"), a("", status="erased")], False),
        ([u("Hello")], [*OPENING, u("More")], False),
        ([u("Hello")], [*OPENING, u("More"), a("Yes.")], False),
        ([u("Hallo")], OPENING, False),
        (OPENING, [*OPENING, a("And then?")], False),
        ([u("/compact")], [("user", "/compact", {"is_command": True}), a("Done.", is_command=True)], False),
        ([u("q"), made(CALL), brought(CALL)], [u("q"), made(CALL), brought(CALL), a("End")], True),
        ([u("q"), made(CALL), brought(CALL, "y")], [u("q"), made(CALL), brought(CALL), a("End")], False),
        ([u("q"), made(CALL)], [u("q"), made(CALL), brought(CALL), a("End")], False),
        ([u("q"), made(CALL), brought(CALL, "y"), u("On")],
         [u("q"), made(CALL), brought(CALL), u("On"), a("End")], True),
        # It lacks calls of its own too, so it is a branch; calls of the service's tools it need not have.
        ([u("q"), made(CALL), brought(CALL)],
         [u("q"), made(CALL), brought(CALL), made(AGAIN), brought(AGAIN), a("End")], False),
        ([u("q"), made(CALL), brought(CALL)],
         [u("q"), made(CALL), brought(CALL), made(OURS), brought(OURS), a("End")], True),
        # Some agents clear earlier results.
        ([u("q"), made(CALL), brought(CALL, "[cleared]"), made(AGAIN), brought(AGAIN)],
         [u("q"), made(CALL), brought(CALL), made(AGAIN), brought(AGAIN), a("End")], True),
        # Pictures belong to a result.
        *(([u("q"), made(CALL), brought_with(given)], [u("q"), made(CALL), brought_with(RED), a("End")], again)
          for given, again in ((RED, True), (BLUE, False))),
        ([], OPENING[1:], False),
    ],
)  # fmt: skip
def test_a_history_without_the_last_reply_asks_for_another(
    given: list[Said], history: list[Said], *, again: bool
) -> None:
    found = compared(given, history)
    assert found.asks_for_new_reply == again
    assert found.new_from is None
    assert not (again and found.is_all_stored)


@each(
    ("given", "history", "unanswered", "new"),
    [
        ([*OPENING, u("Or so")], [*OPENING, u("More")], {3}, 2),
        ([u("Hallo")], [u("Hello")], {1}, 0),
        ([*OPENING, u("Or so"), a("Yes."), u("On")], [*OPENING, u("More"), u("Or so"), a("Yes.")], {3}, 4),
        ([*OPENING, u("More"), u("Or so")], [*OPENING, u("More")], {3}, 3),
        ([*OPENING, u("Third")], [*OPENING, u("First"), u("Second")], {3, 4}, 2),
        *(([shown(text, ANEW)], [shown(text, SIGNED)], {1}, 0) for text in ("q", "")),
        ([shown("q", PLAIN), a("a"), u("y")], [shown("q", SIGNED), shown("q", ANEW), a("a")], {1}, 2),
        # Controls: it was answered; nothing comes after it; another message separates them.
        ([*OPENING, u("Or so")], [*OPENING, u("More")], (), None),
        ([*OPENING, u("Or so")], [*OPENING, u("More"), a("Yes.")], (), None),
        (OPENING, [*OPENING, u("More")], {3}, None),
        ([*OPENING, u("Or so")], [*OPENING, u("More"), u("Other")], {3}, None),
        ([OPENING[0], a("Edited."), u("Or so")], [*OPENING, u("More")], {2, 3}, None),
    ],
)  # fmt: skip
def test_what_a_failed_turn_brought_may_be_taken_back(
    given: list[Said], history: list[Said], unanswered: Collection[int], new: int | None
) -> None:
    found = compared(given, history, unanswered)
    assert found.new_from == new
    assert not found.is_all_stored


def test_a_request_that_is_stored_and_waits_is_told_apart() -> None:
    assert compared([*OPENING, u("More")], [*OPENING, u("More")]).is_all_stored
    assert not compared([*OPENING], [*OPENING, u("More")]).is_all_stored


WORDS: Final = st.sampled_from(["one", "two", "three", ""])
HISTORY: Final = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), WORDS), max_size=6)


@given(HISTORY, HISTORY)
def test_only_what_begins_with_the_stored_history_goes_on_with_it(before: list[Said], more: list[Said]) -> None:
    found = compared([*before, *more], before)
    assert not found.diverged
    assert found.new_from == (len(before) if more else None)


@given(HISTORY, HISTORY)
def test_control_a_history_that_parts_is_never_gone_on_with(given_: list[Said], history: list[Said]) -> None:
    found = compared(given_, history)
    begins = [tuple(one) for one in given_[: len(history)]] == [tuple(one) for one in history]
    assert found.diverged is not begins


def test_many_steps_of_a_reply_take_linear_time() -> None:
    def comparing(steps: int) -> Callable[[], object]:
        history = [u("q"), *(made(OURS, "word " * 100) for _ in range(steps))]
        given = [u("q"), a("word " * 100 * steps + "other")]
        return lambda: compared(given, history)

    assert_linear_in(comparing, 3_000)


def test_a_name_is_one_tenants_and_one_users() -> None:
    names = [
        ConversationName(text="chat-1"),
        ConversationName(text="chat-1", user="ann"),
        ConversationName(text="chat-1", user="bob"),
        ConversationName(text="chat-2"),
    ]
    found = [derived_id(tenant, name) for tenant in (ONE, TWO) for name in names]
    assert len(set(found)) == len(found)
    assert derived_id(ONE, names[1]) == found[1]
    assert all((id_.version, id_.variant) == (8, "specified in RFC 4122") for id_ in found)


SIZES: Final = st.lists(
    st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.integers(1, 9)), max_size=8
)


@given(SIZES, st.integers(0, 60))
def test_what_is_left_fits_is_the_newest_and_keeps_the_system(history: list[tuple[Any, int]], room: int) -> None:
    messages = [ContextMessage(role=role, content=str(number)) for number, (role, _) in enumerate(history)]
    sizes = [size for _, size in history]
    kept = newest_within(messages, sizes, room)
    numbers = [int(message.content) for message in kept]
    if kept:
        assert sum(sizes[number] for number in numbers) <= room
        assert {number for number, (role, _) in enumerate(history) if role == "system"} <= set(numbers)
        spoken = [number for number in numbers if history[number][0] != "system"]
        assert history[spoken[0]][0] != "tool"
        assert spoken[-1] == max(number for number, (role, _) in enumerate(history) if role != "system")
