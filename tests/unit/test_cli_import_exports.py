"""Exports of ChatGPT and Claude: messages are imported, and everything else in the file is counted or refused."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from app.cli import import_files
from app.cli.complaints import ComplaintError
from app.cli.import_files import open_source
from app.cli.import_formats import Imported

EXPORTS: Final = Path(__file__).parents[1] / "fixtures" / "exports"
Json = dict[str, Any]


def read(file: Path) -> list[Imported]:
    return list(open_source(file).conversations())


def said(one: Imported) -> list[tuple[Any, ...]]:
    """The role, words, tool, its input or output, and time of each message."""
    return [
        (
            each["role"],
            each.get("content", ""),
            *((part.get("name"), part.get("arguments", part.get("content"))) for part in each.get("parts", ())),
            each["created_at"][11:19],
        )
        for each in one.messages
    ]


def test_chatgpt_the_branch_that_is_shown_with_its_tools_and_times() -> None:
    tides, boats = read(EXPORTS / "chatgpt.json")

    assert said(tides) == [
        ("user", "When is high water in Riga on 5 March 2025?", "10:00:00"),
        ("assistant", "", ("python", {"input": "tide('Riga', '2025-03-05')"}), "10:00:21"),
        ("tool", "", ("python", "18:45\nheight 0.2 m"), "10:00:22"),
        ("assistant", "High water is at 18:45, 0.2 m above the mean.", "10:00:24"),
        ("user", "[image]\nIs this the pier? Причал 7 🚤", "10:00:24"),
        ("assistant", "Yes, that is pier 7.", "10:01:00"),
    ]
    assert tides.messages[0]["created_at"] == "2025-03-04T10:00:00.500000+00:00"
    assert tides.messages[3]["model"] == "gpt-4o"
    assert (tides.hidden, tides.other_branches, tides.about["title"]) == (2, 2, "Tides of Riga")
    assert tides.messages[1]["parts"][0]["id"] == tides.messages[2]["parts"][0]["tool_call_id"] == "c1"
    assert said(boats)[1:3] == [
        ("assistant", "", ("file_search", {}), "10:03:21"),
        ("tool", "", ("file_search", "Boat 12 is yours."), "10:03:21"),
    ]
    assert "title" not in boats.about


def test_claude_blocks_in_their_order() -> None:
    (permit,) = read(EXPORTS / "claude.json")

    assert said(permit) == [
        ("user", "What does the letter say?\n[letter.txt]\nReference HM-2025-0417.\n[quay.png]", "08:40:00"),
        ("assistant", "I look it up.", ("registry", {"reference": "HM-2025-0417"}), "08:41:00"),
        ("tool", "", ("registry", "decided on 15 May 2025"), "08:41:00"),
        ("assistant", "It was decided on 15 May 2025.", "08:41:00"),
        ("user", "Thank you.", "08:50:00"),
    ]
    assert (permit.hidden, permit.about["title"]) == (1, "Permit for the quay")


@pytest.mark.parametrize("name", ["chatgpt", "claude"])
def test_the_archive_is_the_same_as_the_file_in_it(name: str, tmp_path: Path) -> None:
    values = json.loads((EXPORTS / f"{name}.json").read_bytes())
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("data/conversations-000.json", json.dumps(values[:1]))
        archive.writestr("data/conversations-001.json", json.dumps(values[1:]))
    found, plain = read(tmp_path / "export.zip"), read(EXPORTS / f"{name}.json")
    assert [(one.messages, one.about, one.identity) for one in found] == [
        (one.messages, one.about, one.identity) for one in plain
    ]
    assert len({one.identity for one in found}) == len(found)


def changed(change: Callable[[list[Json]], Any]) -> str:
    values = json.loads((EXPORTS / "chatgpt.json").read_bytes())
    changed = change(values)
    return json.dumps(values if changed is None else changed)


def _circle(values: list[Json]) -> None:
    values[0]["mapping"]["root"]["parent"] = "a3"


DEEP: Final = '{"mapping":' + '{"a":' * 100_000 + "1" + "}" * 100_001


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changed(_circle), "conversation 1: its messages are no tree"),
        (changed(lambda values: values[0].update(mapping=[])), "conversation 1: its messages are no tree"),
        (changed(lambda values: [*values, {"chat_messages": []}]), "conversation 4: no conversation of this kind"),
        (changed(lambda values: [*values, 7]), "conversation 4: no conversation of this kind"),
        (changed(lambda values: values)[:-40], "no JSON"),
        (changed(lambda values: values) + "x", "something follows its end"),
        (changed(lambda values: values)[:-1] + f",{DEEP}]", "nested too deeply"),
        (changed(lambda values: values)[:-1] + ',{"mapping":' + "9" * 5_000 + "}]", "no JSON"),
        (changed(lambda values: values)[:-1] + ',{"mapping" 1}]', "no JSON: Expecting ':' delimiter"),
    ],
    ids=["circle", "list", "mixed", "number", "cut", "more", "deep", "digits", "broken"],
)
def test_what_is_no_export_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(text)
    with pytest.raises(ComplaintError) as caught:
        read(file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_odd_values_are_no_reason_to_refuse_years(tmp_path: Path) -> None:
    def odd(values: list[Json]) -> None:
        first = values[0]["mapping"]
        first["u1"]["message"]["content"]["parts"] = ["a\x00b \ud83d", None, 7, {"x": 1}]
        first["a2"]["message"].update(create_time=float("inf"), metadata="none", author=None)
        first["a3"]["message"]["create_time"] = 1e300
        first["stray"] = None
        values[0].update(title=["no", "title"], current_node="gone")

    file = tmp_path / "conversations.json"
    file.write_text(changed(odd))
    found = read(file)[0]
    assert found.messages[0]["content"] == "a\N{REPLACEMENT CHARACTER}b \N{REPLACEMENT CHARACTER}"
    assert [each["content"] for each in found.messages[-2:]] == [
        "[image]\nIs this the pier? Причал 7 🚤",
        "Yes, that is pier 7.",
    ]
    assert found.messages[-1]["created_at"] == "2025-03-04T10:00:22.500000+00:00"
    assert "title" not in found.about


@pytest.mark.parametrize(
    "time", ["1969-07-20T20:17:00+00:00", "2099-01-01T00:00:00+14:00", "1899-12-31T23:00:00+00:00"]
)
def test_times_before_1970_and_after_2038_are_kept(tmp_path: Path, time: str) -> None:
    exported = json.loads((EXPORTS / "claude.json").read_bytes())
    given = exported[0]["chat_messages"][0]["created_at"]
    exported[0]["chat_messages"][0]["created_at"] = time
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(exported))
    (kept, *_) = read(file)[0].messages
    assert (kept["created_at"] == time) == (not time.startswith("1899"))
    assert kept["created_at"] != given


def test_a_message_of_an_unknown_kind_is_counted_as_left_out(tmp_path: Path) -> None:
    def told(content: Json) -> int:
        file = tmp_path / "conversations.json"
        file.write_text(changed(lambda values: values[0]["mapping"]["u1"]["message"].update(content=content)))
        return read(file)[0].hidden

    empty = told({"content_type": "text", "parts": [""]})
    assert told({"content_type": "poll", "options": ["a", "b"]}) == empty + 1


def test_archives_that_hold_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.zip"

    def refusal(**members: str) -> str:
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in members.items():
                archive.writestr(name, text)
        with pytest.raises(ComplaintError) as caught:
            read(file)
        return str(caught.value)

    assert "no conversations.json" in refusal(**{"chat.html": "x"})
    assert "throughline restore" in refusal(**{"tables/messages.copy": ""})
    assert "no conversation in it" in refusal(**{"conversations.json": '{"messages": []}'})
    assert refusal(**{"conversations.json": '[{"mapping'}).endswith("no JSON: Unterminated string.")
    monkeypatch.setattr(import_files, "MAX_CONVERSATION_LENGTH", 100_000)
    monkeypatch.setattr(import_files, "_CHUNK_BYTES", 1_000)
    assert "more than 100,000 characters" in refusal(**{"conversations.json": '[{"mapping": "' + "x" * 300_000})
    assert "no conversation in it" in refusal(**{"conversations.json": "[]"})
    locked = bytearray(file.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(header) + flags] |= 1
    file.write_bytes(locked)
    with pytest.raises(ComplaintError, match="damaged or cut off"):
        read(file)
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(ComplaintError, match="damaged or cut off"):
        read(file)


def test_memory_is_that_of_the_largest_conversation_and_one_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "conversations.json"
    values = json.loads((EXPORTS / "chatgpt.json").read_bytes())[:1]
    values[0]["mapping"]["a3"]["message"]["content"]["parts"] = ["tide " * 100_000]
    value = json.dumps(values[0])
    with file.open("w") as target:
        target.write("[" + ", ".join([value] * 40) + "]")
    tracemalloc.start()
    number = sum(1 for _ in open_source(file).conversations())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert number == 40
    assert peak < file.stat().st_size / 2

    monkeypatch.setattr(import_files, "MAX_CONVERSATION_LENGTH", 100_000)
    monkeypatch.setattr(import_files, "_CHUNK_BYTES", 1_000)
    file.write_text(changed(lambda values: values)[:-1] + ',{"mapping": {"' + "x" * 300_000 + '": 1}}]')
    with pytest.raises(ComplaintError, match="a conversation of more than 100,000 characters"):
        read(file)


def test_a_download_that_broke_off_before_its_first_bytes_is_no_json_with_an_error(tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    file.write_text("<html>Please log in</html>")
    with pytest.raises(ComplaintError, match=r"the archive is damaged or cut off, or has a password\."):
        open_source(file)


def test_an_export_whose_messages_are_all_left_out_says_so(tmp_path: Path) -> None:
    def told(*texts: Any) -> str:
        file = tmp_path / "conversations.json"
        messages = [{"sender": "human", "text": text} for text in texts]
        file.write_text(json.dumps([{"uuid": "c", "chat_messages": messages}]))
        with pytest.raises(ComplaintError) as caught:
            read(file)
        return str(caught.value).removeprefix(str(file))

    assert told(5, {"a": 1}, "") == ": there is no conversation in it. (2 hidden messages left out)"
    assert told("", None) == ": there is no conversation in it."
