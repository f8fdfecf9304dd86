"""A conversation as Markdown: everything that was said, whole and in order, and nothing about compactions."""

from __future__ import annotations

from app.core.model.conversation import Conversation
from app.core.model.export import markdown_head, markdown_message
from tests.builders import CONVERSATION, START, TENANT, message

CALL = {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"city": "Riga"}}
RESULT = {"type": "tool_result", "tool_call_id": "c1", "name": "look_up", "content": "```\n7 °C\n```"}


def test_the_head_names_the_conversation_and_its_system_prompt() -> None:
    row = Conversation(
        id=CONVERSATION,
        tenant_id=TENANT,
        title="Riga in May",
        system_prompt="Be brief.",
        compressed_state={"logos": ["secret"]},
        created_at=START,
        updated_at=START,
    )
    head = markdown_head(row)
    assert head.startswith("# Riga in May\n")
    assert "## System prompt\n\nBe brief." in head
    assert "secret" not in head


def test_a_message_stands_under_who_said_it() -> None:
    told = markdown_message(message(1, "Привет, *мир*", role="user"))
    assert told.startswith("\n## User, ")
    assert told.endswith("\n\nПривет, *мир*\n")
    named = markdown_message(message(1, "Hello", role="user", metadata={"name": "Anna\n# B"}))
    assert named.startswith("\n## User (Anna # B), ")


def test_a_text_part_that_the_content_says_already_is_not_told_twice() -> None:
    parts = ({"type": "text", "text": "hello"}, {"type": "text", "text": "and more"})
    assert markdown_message(message(1, "hello", parts=parts)).endswith("\n\nhello\n\nand more\n")


def test_calls_and_results_stand_in_fences_that_they_cannot_close() -> None:
    assert '```\n{\n  "city": "Riga"\n}\n```' in markdown_message(message(2, "", role="assistant", parts=(CALL,)))
    assert "````\n```\n7 °C\n```\n````" in markdown_message(message(3, "", role="tool", parts=(RESULT,)))


def test_what_is_no_part_of_the_talk_is_left_out_or_named() -> None:
    assert markdown_message(message(4, "/compact", is_command=True)) == ""
    assert "*(erased)*" in markdown_message(message(5, "", status="erased"))
    assert "*(interrupted)*" in markdown_message(message(6, "half a", role="assistant", status="interrupted"))


def test_headings_are_in_the_conversations_language() -> None:
    assert markdown_message(message(1, "Привет", role="user"), "ru").startswith("\n## Пользователь, ")
    parts = (CALL, {"type": "media", "media_type": "image/png", "url": "https://example.com/a.png"})
    told = markdown_message(message(2, "", role="assistant", parts=parts, status="interrupted"), "ru")
    assert "*Вызывает " in told
    assert "*Вложение image/png: https://example.com/a.png*" in told
    assert told.endswith("*(прервано)*\n")
    assert (
        markdown_message(message(3, "", role="tool", parts=({**RESULT, "name": None},)), "ru").count("инструмента") == 1
    )


def test_a_medium_is_told_with_its_name() -> None:
    plan = {"type": "media", "media_type": "application/pdf", "data": "aGk=", "name": "plan.pdf"}
    assert "*Attached application/pdf, plan.pdf*" in markdown_message(message(1, "look", parts=(plan,)))
    assert "*Attached application/pdf*" in markdown_message(message(1, "look", parts=({**plan, "name": ""},)))
