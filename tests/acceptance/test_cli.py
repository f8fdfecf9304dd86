"""The command line against the running service, as a person and as a script use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import app, transfer
from app.client import ConnectionFailedError, Throughline
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, SYNC, WINDOW, Talk, lines, text_of
from tests.gemini_server import Gemini
from tests.servers import ROOT

Run = Callable[..., Result]
RUSSIAN = "Меня зовут Анна, я планирую поездку в Ригу на 14 мая, бюджет 900 евро."


@pytest.fixture
def client(offline: Service) -> Iterator[Throughline]:
    with Throughline(offline.url, trust_env=False) as made:
        yield made


@pytest.fixture
def run(offline: Service) -> Run:
    def command(*argv: str, stdin: str | None = None, url: str = offline.url) -> Result:
        return CliRunner().invoke(app, [*argv, "--url", url], input=stdin)

    return command


def good(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.stdout


def said(*texts: str) -> str:
    return "".join(f"{text}\n" for text in texts)


def without(value: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name not in names}


def dead_line(*_: Any) -> Any:
    raise ConnectionFailedError("the line went dead")


def id_in(output: str) -> str:
    found = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", output)
    assert found is not None, output
    return found.group()


class TestChat:
    @pytest.mark.long
    def test_a_russian_chat(self, run: Run, client: Throughline) -> None:
        shown = good(
            run(
                "chat", "--locale", "ru", "--title", "Поездка", stdin=said(RUSSIAN, "", "Какой у меня бюджет?", "/quit")
            )
        )
        talk = client.conversation(id_in(shown))
        assert (talk.title, talk.locale, talk.message_count) == ("Поездка", "ru", 4)
        replies = [one.content for one in client.messages(talk.id, order="asc") if one.role == "assistant"]
        assert all(reply in shown for reply in replies)
        assert "900 евро" in replies[1]
        gauges = re.findall(r"\[[\d,]+ % · [\d\xa0]+ из [\d\xa0]+ токенов · место есть · .+\]", shown)
        assert len(gauges) == 3, "one at the beginning, one after each turn"
        assert f"последние {talk.context.breakdown.tail}" in shown
        client.delete_conversation(talk.id)

    @pytest.mark.long
    def test_an_inline_compaction_is_told_of_in_the_talk_s_language(
        self, run: Run, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, policy={**WINDOW, "background_at": 0.845}, locale="ru")
        talk.fill(2_500)
        shown = good(run("chat", talk.id, stdin=said(text_of(SYNC - 2_400).replace("\n", " "))))
        (row,) = [one for one in talk.compactions() if one["trigger"] == "sync"]
        numbers = f"({row['tokens_before']:,} → {row['tokens_after']:,})".replace(",", "\xa0")
        before, after = shown.index("Сжимаю беседу"), shown.index("Беседа сжата")
        assert numbers in shown[after:].split("\n", 1)[0]
        assert before < after < shown.rindex(" токенов · ")

    @pytest.mark.long
    def test_the_worker_s_compaction_is_told_of_too(
        self, offline: Service, start_talk: StartTalk, tmp_path: Path
    ) -> None:
        talk = start_talk(offline, policy=WINDOW)
        talk.fill(2_100)
        process = Chatting(offline.url, talk.id, tmp_path)
        process.say(text_of(80))
        talk.wait_ended(1)
        process.wait_for("of 3,060 tokens", times=2)
        for turns in range(3, 10):
            if "Conversation compressed" in process.output:
                break
            process.say("And now?")
            process.wait_for("of 3,060 tokens", times=turns)
        code = process.end()
        assert "Conversation compressed · Context at 70 % or more" in process.output
        assert process.output.count("Compressing the conversation · Context at 70 %") == 1, "each is told once"
        assert code == 0

    def test_the_day_of_a_message_is_that_of_the_terminal_s_clock(
        self, run: Run, client: Throughline, offline: Service, start_talk: StartTalk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk = start_talk(offline)
        with monkeypatch.context() as abroad:
            abroad.setenv("TZ", "ACST-9:30")
            time.tzset()
            good(run("chat", talk.id, stdin=said("We bought the tiles yesterday.")))
        time.tzset()
        assert [one.utc_offset for one in client.messages(talk.id)] == [570, 570]

    def test_commands(self, run: Run, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.batch(lines(40))
        shown = good(
            run("chat", talk.id, stdin=said("/state", "/compact harbours", "/state", "/context", "/stats", "/help"))
        )
        summary = talk.compactions()[0]["summary"]
        assert "There is no state yet" in shown
        assert summary.splitlines()[0] in shown
        assert f"covers messages 1–{talk.boundary()}" in shown
        assert "Compactions that took effect" in shown
        assert "/expand MARKER" in shown
        markers = re.findall(r"expand: (\[.+ →L1:\S+\])", shown)
        expanded = good(run("chat", talk.id, stdin=said(f"/expand {markers[0]} full", "/quit", "no")))
        first = talk.history()[0]
        assert first["content"] in expanded
        assert "› no" not in expanded, "nothing is answered after /quit"

    def test_a_wrong_command_is_a_line_and_the_chat_goes_on(self, run: Run, client: Throughline) -> None:
        done = run("chat", stdin=said("/nope", "/expand", " /etc/hosts is a file.", "/stats"))
        assert done.exit_code == 1, "a line of a script that was not answered"
        assert "There is no /nope: /help lists the commands" in done.stdout
        assert "/expand needs a marker" in done.stdout
        id_ = id_in(done.stdout)
        assert next(client.messages(id_, order="asc")).content == " /etc/hosts is a file."
        client.delete_conversation(id_)

    def test_taken_up_again_and_changed(self, run: Run, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, title="Boats")
        talk.chat("The boat is called Nordwind.")
        shown = good(run("chat", talk.id, "--preset", "handoff", "--system", "Speak of boats.", stdin=""))
        assert "The boat is called Nordwind." in shown
        assert "handoff · Boats" in shown
        assert talk.get()["system_prompt"] == "Speak of boats."
        assert run("chat", talk.id, "--window", "4000", stdin="").exit_code == 2

    def test_a_model_that_fails_keeps_message_and_chat(
        self, run: Run, gemini_service: Service, gemini: Gemini, start_talk: StartTalk
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", "blocked_prompt")
        done = run("chat", talk.id, stdin=said("Is anybody there?", "And now?"), url=gemini_service.url)
        assert done.exit_code == 1
        assert "Traceback" not in done.output
        assert [one["role"] for one in talk.history()] == ["user", "user", "assistant"]
        assert talk.history()[-1]["content"] in done.stdout

    @pytest.mark.long
    def test_an_interrupt_stops_the_reply_and_keeps_the_chat(
        self, gemini_service: Service, gemini: Gemini, start_talk: StartTalk, tmp_path: Path
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", {"name": "honest", "hold_after": 1})
        process = Chatting(gemini_service.url, talk.id, tmp_path)
        process.say("Tell me everything about the harbour.")
        process.wait_for("You said")
        process.interrupt()
        process.wait_for("interrupted: what came is kept.")
        process.say("Thank you, that is enough.")
        process.wait_for(" tokens · ", times=3)
        assert process.end() == 0, process.output
        assert "Traceback" not in process.output
        assert [one["status"] for one in talk.history()] == ["complete", "interrupted", "complete", "complete"]


class Chatting:
    """``throughline chat`` as a process that is used through a pipe."""

    def __init__(self, url: str, id_: str, folder: Path) -> None:
        self._file = folder / "said"
        argv = [sys.executable, "-m", "app.cli", "chat", id_, "--url", url]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self._file.open("w") as output:
            self._process = subprocess.Popen(
                argv, env=env, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, text=True
            )
        self.wait_for("conversation ")

    @property
    def output(self) -> str:
        return self._file.read_text(encoding="utf-8", errors="replace")

    def say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(text.split()) + "\n")
        self._process.stdin.flush()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, words: str, seconds: float = 60, *, times: int = 1) -> None:
        deadline = time.monotonic() + seconds
        while self.output.count(words) < times:
            assert time.monotonic() < deadline, self.output
            assert self._process.poll() is None, self.output
            time.sleep(0.05)

    def end(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(60)


class TestTransfer:
    def test_an_export_comes_back(
        self, run: Run, client: Throughline, start_talk: StartTalk, offline: Service, tmp_path: Path
    ) -> None:
        talk = start_talk(offline, policy=MANUAL, title="Boats", system_prompt="Speak of boats.", metadata={"k": 1})
        call = {"type": "tool_call", "id": "c1", "name": "tide", "arguments": {"port": "Riga"}}
        talk.batch(lines(30))
        talk.append("I look.", role="assistant", parts=[call])
        talk.append(
            "", role="tool", parts=[{"type": "tool_result", "tool_call_id": "c1", "content": {"high": "18:45"}}]
        )
        pinned = talk.history()[5]
        assert talk.http.put(talk.path(f"/messages/{pinned['id']}/pin")).is_success
        talk.chat("/compact")
        talk.append("See #3: the tide.", event_type="command")
        erased, *_ = talk.history()
        assert talk.http.delete(talk.path(f"/messages/{erased['id']}")).is_success
        talk.chat("Who brings the ropes?")
        assert talk.http.post(talk.path("/chat/regenerate"), json={}).is_success
        first, *_ = talk.pages("/anchors")
        assert talk.http.patch(talk.path(f"/anchors/{first['id']}"), json={"status": "active"}).is_success
        tides = tmp_path / "Tides ö.md"
        tides.write_text("High water at 18:45.")
        assert "Tides ö.md" in good(run("files", "add", talk.id, str(tides)))
        song = tmp_path / "song.flac"
        song.write_bytes(b"fLaC")
        assert run("files", "add", talk.id, str(song), "--type", "audio/flac").exit_code == 2
        assert "320" in good(run("files", "add", talk.id, str(song), "--type", "audio/flac", "--tokens", "320"))
        file = tmp_path / "boats.json"
        assert "bytes" in good(run("export", talk.id, "--output", str(file)))
        assert json.loads(file.read_text()) == talk.http.get(talk.path("/export")).json()

        shown = good(run("import", str(file)))
        again = client.conversation(id_in(shown))
        names = ("title", "system_prompt", "metadata", "preset", "policy", "locale")
        assert all(getattr(again, name) == talk.get()[name] for name in names)
        messages, told = Talk(offline, talk.http, {"id": str(again.id)}).history(), talk.history()
        assert {one["status"] for one in told} == {"complete", "erased", "superseded"}
        assert [one["seq"] for one in told if one["is_command"]] == [33, 34], "and not what a client only calls one"
        ids = {"id", "message_id", "superseded_by"}
        made = {"id", "conversation_id", "model"}  # a message that no model wrote has an empty model name, or none
        assert [without(one, made) for one in messages] == [without(one, made) for one in told]
        anchors = [
            [without(one.model_dump(mode="json"), ids) for one in client.anchors(id_)] for id_ in (talk.id, again.id)
        ]
        assert anchors[0] == anchors[1]
        assert sum(one["proposed_by"] == "user" for one in anchors[1]) == 1
        files = [list(client.files(id_)) for id_ in (talk.id, again.id)]
        about = ("name", "media_type", "sha256", "bytes", "tokens")
        here, there = ([[getattr(one, name) for name in about] for one in listed] for listed in files)
        assert here == there
        assert len(there) == 2
        assert good(run("files", "remove", str(again.id), str(files[1][0].id)))
        assert [one["name"] for one in json.loads(good(run("files", "list", str(again.id), "--json")))] == ["song.flac"]
        client.delete_conversation(again.id)

    def test_markdown_on_standard_output(self, run: Run, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, title="Boats")
        talk.append("Где капитан? 🚤")
        assert (
            good(run("export", talk.id, "--format", "markdown"))
            == talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
        )

    @pytest.mark.long
    def test_a_broken_import_goes_on_and_has_one_effect(
        self, run: Run, client: Throughline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / f"long-{time.time_ns()}.jsonl"
        texts = [f"Line {n} of {file.name}." for n in range(1, 231)]
        file.write_text("".join(json.dumps({"role": "user", "content": text}) + "\n" for text in texts))
        whole, calls = Throughline.append_many, 0

        class Breaking:
            def __get__(self, client: Throughline, owner: type) -> Callable[..., Any]:
                def append_many(*args: Any, **kwargs: Any) -> Any:
                    nonlocal calls
                    calls += 1
                    made = whole.__get__(client, owner)(*args, **kwargs)
                    if calls == 2:
                        raise ConnectionFailedError("the line went dead")
                    return made

                return append_many

        monkeypatch.setattr(transfer, "BATCH_MESSAGES", 100)
        with monkeypatch.context() as patch:
            patch.setattr(Throughline, "append_many", Breaking())
            broken = run("import", str(file))
        assert (broken.exit_code, broken.stderr) == (2, "The service does not answer: the line went dead.\n")
        shown = good(run("import", str(file)))
        assert "230 messages" in shown
        id_ = id_in(shown)
        assert [one.content for one in client.messages(id_, order="asc", page_size=100)] == texts
        assert id_in(good(run("import", str(file)))) == id_
        assert client.conversation(id_).message_count == 230
        another = id_in(good(run("import", str(file), "--again")))
        assert another != id_
        for one in (id_, another):
            client.delete_conversation(one)
        assert "is deleted: --again" in run("import", str(file)).stderr

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("stored", [0, 2])
    def test_an_import_does_not_go_on_behind_what_somebody_wrote_meanwhile(
        self, run: Run, client: Throughline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int
    ) -> None:
        file = tmp_path / f"half-{time.time_ns()}.jsonl"
        texts = [f"Line {n} of {file.name}." for n in range(1, 4)]
        file.write_text("".join(json.dumps({"role": "user", "content": text}) + "\n" for text in texts))

        def first_batch(messages: Sequence[Any]) -> Iterator[Sequence[Any]]:
            if stored:
                yield messages[:stored]
            dead_line()

        monkeypatch.setattr(transfer, "BATCH_MESSAGES", 2)
        with monkeypatch.context() as patch:
            patch.setattr(transfer, "_batches", first_batch)
            assert run("import", str(file)).exit_code == 2
        (half,) = (one for one in client.conversations() if one.title == file.stem)
        client.append(half.id, "user", "Where are we?")
        refused = run("import", str(file))
        assert (refused.exit_code, "somebody has written since" in refused.stderr) == (2, True)
        assert [one.content for one in client.messages(half.id, order="asc")] == [*texts[:stored], "Where are we?"]
        whole = id_in(good(run("import", str(file), "--again")))
        assert [one.content for one in client.messages(whole, order="asc")] == texts
        for id_ in (str(half.id), whole):
            client.delete_conversation(id_)

    @pytest.mark.long
    def test_a_repeated_import_changes_nothing_that_a_user_changed_since(
        self, run: Run, client: Throughline, start_talk: StartTalk, offline: Service, tmp_path: Path
    ) -> None:
        talk = start_talk(offline, policy=MANUAL, title=(title := f"Once {time.time_ns()}"), metadata={"k": 1})
        talk.batch(lines(30))
        for place in (5, 7):
            assert talk.http.put(talk.path(f"/messages/{talk.history()[place]['id']}/pin")).is_success
        talk.chat("/compact")
        first, *_ = talk.pages("/anchors")
        assert talk.http.patch(talk.path(f"/anchors/{first['id']}"), json={"status": "active"}).is_success
        client.attach_file(talk.id, b"High.", name="tides.txt", media_type="text/plain")
        file = tmp_path / "boats.json"
        good(run("export", talk.id, "--output", str(file)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Throughline, "set_anchor_status", property(dead_line))
            broken = run("import", str(file))
        assert (broken.exit_code, broken.stderr) == (2, "The service does not answer: the line went dead.\n")
        (half,) = (one for one in client.conversations() if one.title == title and str(one.id) != talk.id)
        assert (half.metadata, list(client.files(half.id))) == ({"k": 1, transfer.UNFINISHED: True}, [])

        def kept() -> tuple[list[int], list[str], int]:
            pinned = [one.seq for one in client.messages(id_, order="asc") if one.protected_reason == "pinned"]
            chosen = [one.status for one in client.anchors(id_) if one.proposed_by == "user"]
            return pinned, chosen, len(list(client.files(id_)))

        id_ = id_in(good(run("import", str(file))))
        assert id_ == str(half.id)
        assert (client.conversation(id_).metadata, kept()) == ({"k": 1}, ([6, 8], ["active"], 1))
        pinned = next(one for one in client.messages(id_, order="asc") if one.seq == 6)
        client.unpin_message(id_, pinned.id)
        chosen = next(one for one in client.anchors(id_) if one.proposed_by == "user")
        client.set_anchor_status(id_, chosen.id, "resolved")
        client.remove_file(id_, next(iter(client.files(id_))).id)
        repeated = run("import", str(file))
        assert (id_in(good(repeated)), repeated.stderr) == (id_, "")
        assert kept() == ([8], ["resolved"], 0)
        client.delete_conversation(id_)

    def test_control_without_keys_a_repeated_import_comes_twice(
        self, run: Run, client: Throughline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "twice.json"
        file.write_text(json.dumps({"messages": [{"role": "user", "content": f"Once {time.time_ns()}."}]}))
        keys = iter(("one", "two"))
        monkeypatch.setattr(transfer, "_import_key", lambda *_args, **_kwargs: f"{next(keys)}-{time.time_ns()}")
        ids = {id_in(good(run("import", str(file)))) for _ in range(2)}
        assert len(ids) == 2
        for one in ids:
            client.delete_conversation(one)

    @pytest.mark.long
    @pytest.mark.parametrize("name", ["chatgpt", pytest.param("claude", marks=pytest.mark.long)])
    def test_an_export_of_another_program_comes_in_once(
        self, run: Run, client: Throughline, tmp_path: Path, name: str
    ) -> None:
        values = json.loads((ROOT / "tests" / "fixtures" / "exports" / f"{name}.json").read_bytes())
        for value in values:  # ids that no test before has used
            value["uuid"] = f"{time.time_ns()}-{name}"
        file = tmp_path / "conversations.json"
        file.write_text(json.dumps(values))
        first = json.loads(good(run("import", str(file), "--json")))
        assert [one["was_there"] for one in first] == [False] * len(first)
        for one in first:
            stored = list(client.messages(one["conversation_id"], order="asc"))
            assert len(stored) == one["messages"]
            assert {message.created_at.year for message in stored} == {2025}
            client.append(one["conversation_id"], "user", "And what now?")
        file.write_text(json.dumps(values, indent=2))  # another file with the same conversations
        shown = good(run("import", str(file)))
        assert shown.count("was imported before") == len(first)
        assert all(one["conversation_id"] in shown for one in first)
        client.delete_conversation(first[0]["conversation_id"])
        after = json.loads(good(run("import", str(file), "--json")))
        assert all(one["was_there"] for one in after), "one that was deleted does not come back, nor keep others out"
        again = json.loads(good(run("import", str(file), "--again", "--json")))
        assert not {one["conversation_id"] for one in again} & {one["conversation_id"] for one in first}
        for one in (*first[1:], *again):
            client.delete_conversation(one["conversation_id"])

    @pytest.mark.long
    def test_one_in_which_somebody_has_written_does_not_keep_the_others_of_an_export_out(
        self, run: Run, client: Throughline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        values = json.loads((ROOT / "tests" / "fixtures" / "exports" / "chatgpt.json").read_bytes())
        for value in values:
            value["uuid"] = f"{time.time_ns()}-written"
        file = tmp_path / "conversations.json"
        file.write_text(json.dumps(values))

        def first_batch(messages: Sequence[Any]) -> Iterator[Sequence[Any]]:
            yield messages[:1]
            dead_line()

        known = {one.id for one in client.conversations()}
        monkeypatch.setattr(transfer, "BATCH_MESSAGES", 1)
        with monkeypatch.context() as patch:
            patch.setattr(transfer, "_batches", first_batch)
            assert run("import", str(file)).exit_code == 2
        (half,) = (one for one in client.conversations() if one.id not in known)
        client.append(half.id, "user", "Where are we?")
        done = run("import", str(file), "--json")
        assert "somebody has written since" in done.stderr
        others = [one["was_there"] for one in json.loads(done.stdout)]
        assert others == [True, *[False] * (len(others) - 1)]
        assert len(others) > 1
        assert client.conversation(half.id).message_count == 2
        for one in json.loads(done.stdout):
            client.delete_conversation(one["conversation_id"])

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("policy", [{}, {"oversized": "elide"}])
    def test_what_the_service_refuses_in_the_middle_is_not_half_there(
        self, run: Run, client: Throughline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(transfer, "BATCH_MESSAGES", 20)
        title = f"Long {time.time_ns()}"
        said = [{"role": "user", "content": f"Line {number} of it."} for number in range(30)]
        about = {"title": title, "preset": "semantic", "policy": {"context_window": 4_000, **policy}}
        exported = {"format": "throughline.conversation", "version": 1, "conversation": about}
        file = tmp_path / "long.json"
        file.write_text(json.dumps({**exported, "messages": [*said, {"role": "user", "content": "word " * 9_000}]}))
        done = run("import", str(file))
        there = [one for one in client.conversations() if one.title == title]
        if policy:
            assert (done.exit_code, [one.message_count for one in there]) == (0, [31])
            client.delete_conversation(there[0].id)
            return
        assert (done.exit_code, there) == (2, [])
        assert done.stderr.startswith(f"{file}, after message 20: message 11 of 11 has ")
        assert done.stderr.endswith("Nothing of this conversation is kept.\n")

    def test_a_file_is_never_half_there(
        self, run: Run, offline: Service, start_talk: StartTalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk = start_talk(offline)
        talk.batch(lines(50))
        file = tmp_path / "talk.json"
        file.write_text("what was there before")

        def breaks(*_: Any) -> Iterator[bytes]:
            yield b'{"format":'
            raise ConnectionFailedError("the line went dead")

        with monkeypatch.context() as patch:
            patch.setattr(Throughline, "download", breaks)
            assert run("export", talk.id, "-o", str(file)).exit_code == 2
        assert file.read_text() == "what was there before"
        assert [one.name for one in tmp_path.iterdir()] == ["talk.json"]
        good(run("export", talk.id, "-o", str(file)))
        assert len(json.loads(file.read_text())["messages"]) == 50
        done = run("export", talk.id, "-o", str(tmp_path / "none" / "talk.json"))
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


class TestLooking:
    @pytest.mark.long
    def test_json_is_what_the_service_says(self, run: Run, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.batch(lines(40))
        planned = json.loads(good(run("compact", talk.id, "--dry-run", "--json")))
        assert (planned["status"], planned["id"], talk.get()["state_version"]) == ("planned", None, 0)
        row = json.loads(good(run("compact", talk.id, "--keep-tail", "4", "--json")))
        assert row["to_seq"] == 36
        context = json.loads(good(run("context", talk.id, "--budget", "700", "--query", "oak tables", "--json")))
        assert context["gauge"]["tokens"] - context["gauge"]["breakdown"]["system"] <= 700
        sent = json.loads(good(run("context", talk.id, "--format", "anthropic")))
        assert set(sent) == {"system", "messages"}
        state = json.loads(good(run("state", talk.id, "--json")))
        assert state["state"] == talk.get()["compressed_state"]
        segment = talk.get("/segments")["data"][0]["segment_id"]
        full = json.loads(good(run("expand", talk.id, segment, "--json")))
        assert full["messages"][0]["content"] == talk.history()[0]["content"]
        short = good(run("expand", talk.id, segment, "--level", "tags"))
        assert f"{segment} · tags" in short
        assert json.loads(good(run("stats", talk.id, "--json")))["compactions"]["applied"] == 1
        assert talk.id in {one["id"] for one in json.loads(good(run("list", "--json")))}
        assert "as before the first compaction" in good(run("restore", talk.id, "0"))
        assert talk.get()["compressed_state"] is None

    @pytest.mark.long
    def test_versions_and_their_difference(self, run: Run, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.batch(lines(40))
        assert "nothing was compacted" in run("state", talk.id).stderr
        talk.compact(keep_tail_messages=20)
        talk.compact(keep_tail_messages=2)
        assert "version 1 of 2" in good(run("state", talk.id, "--version", "1"))
        assert "from version 1 to version 2" in good(run("state", talk.id, "--diff", "1", "2"))
        assert run("state", talk.id, "--version", "9").exit_code == 2
        assert "the first is 1" in run("state", talk.id, "--diff", "0", "1").output

    def test_what_was_said_is_traced(self, run: Run, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        assert "never compacted" in good(run("compactions", talk.id))
        talk.append("The harbour permit has to be there by 15 May 2026.")
        talk.batch(lines(40))
        talk.compact()
        hits = json.loads(good(run("search", talk.id, "harbour", "permit", "--json")))
        assert hits == talk.get("/search", q="harbour permit", limit=20)["data"]
        _, shown, *_ = good(run("search", talk.id, '"harbour permit"')).splitlines()
        assert shown.split()[0] == "1"
        assert hits[0]["segment_id"] in shown
        found = json.loads(good(run("anchors", talk.id, "--status", "active", "--json")))
        assert found == [one for one in talk.pages("/anchors") if one["status"] == "active"]
        assert "15 May 2026" in good(run("anchors", talk.id))
        (row,) = json.loads(good(run("compactions", talk.id, "--json")))
        assert row["id"] == talk.compactions()[0]["id"]
        assert f"applied  1–{row['to_seq']}  " in good(run("compactions", talk.id))

    def test_what_is_kept_word_for_word_is_decided_by_hand(
        self, run: Run, client: Throughline, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.append("Who brings the ropes?")
        talk.append("The permit has to be there by 15 May 2026. I'll bring 12 ropes.")
        talk.batch(lines(10))
        talk.compact()
        assert good(run("pin", talk.id, "5")) == "Message 5 is pinned.\n"
        assert [one.seq for one in client.messages(talk.id) if one.protected_reason == "pinned"] == [5]
        assert good(run("unpin", talk.id, "5")) == "Message 5 is not pinned any more.\n"
        assert not [one for one in client.messages(talk.id) if one.protected_reason == "pinned"]
        beyond = run("pin", talk.id, "99")
        assert (beyond.exit_code, beyond.stderr) == (2, "There is no message 99: the newest is 12.\n")

        there = {one.content: one for one in client.anchors(talk.id) if one.original_position == 2}
        assert len(there) == 2
        assert "add some words" in run("set-anchor", talk.id, "2", "resolved").stderr
        assert "has no such anchor" in run("set-anchor", talk.id, "2", "resolved", "nobody said").stderr
        shown = good(run("set-anchor", talk.id, "2", "active", "the", "PERMIT"))
        assert "active by hand" in shown
        changed = {one.content: one for one in client.anchors(talk.id) if one.original_position == 2}
        assert {text for text, one in changed.items() if one.proposed_by == "user"} == {
            next(text for text in there if "permit" in text)
        }

    @pytest.mark.parametrize(
        ("argv", "words"),
        [
            (["context", "no-id"], "'no-id' is no conversation's id"),
            (["search", "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8", "boat"], "No such conversation"),
            (["search", "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8", " "], "q cannot be empty"),
            (["state", "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8"], "No such conversation"),
            (["expand", "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8", "two words"], "neither a marker nor"),
            (["stats", "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8"], "No such conversation"),
            (["import", "/nowhere.json"], "Cannot read /nowhere.json"),
            (["chat", "--preset", "nonsense"], "nonsense"),
        ],
    )
    def test_what_goes_wrong_is_one_line(self, run: Run, argv: Sequence[str], words: str) -> None:
        done = run(*argv)
        assert done.exit_code == 2, done.output
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="the examples are for a shell")
def test_the_examples_of_the_page_run(offline: Service, tmp_path: Path) -> None:
    examples = examples_of((ROOT / "docs" / "cli.md").read_text(encoding="utf-8"))
    done = ran_in_shell(examples, offline, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "58 messages" in done.stdout
    assert (tmp_path / "lantern-nights.md").read_text().startswith("# Lantern Nights\n")
    assert len(json.loads((tmp_path / "lantern-nights.json").read_text())["messages"]) == 60
    commands = {line.split()[1] for line in re.findall(r"throughline [a-z]+", examples)}
    assert commands >= {
        "chat",
        "import",
        "export",
        "list",
        "compact",
        "context",
        "state",
        "expand",
        "stats",
        "restore",
        "doctor",
        "search",
        "anchors",
        "compactions",
        "pin",
        "unpin",
    }


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("curl") is None, reason="the examples call both")
def test_the_page_about_forgetting_shows_what_its_commands_print(offline: Service, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "forgot.md").read_text(encoding="utf-8")
    done = ran_in_shell(examples_of(page).replace("http://localhost:8000", offline.url), offline, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = {line for block in blocks_of(page, "") for line in lines_of(block)}
    assert len(shown) > 25
    assert shown - set(lines_of(done.stdout)) == {"…"}


def lines_of(output: str) -> list[str]:
    """Its lines, without widths of columns, and without what every run has anew: times of compactions."""
    now = re.compile(r"^20\d\d-\d\d-\d\d \d\d:\d\d|\b\d+\.\d\b")
    return [" ".join(now.sub("", line).split()) for line in output.splitlines()]


def examples_of(page: str) -> str:
    return "".join(blocks_of(page, "sh"))


def blocks_of(page: str, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    return [block for of, block in found if of == language]


def ran_in_shell(examples: str, service: Service, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a person gets who types the examples one after the other in the folder of the project."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shim = folder / "bin" / "throughline"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m app.cli "$@"\n')
    shim.chmod(0o755)
    env = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    env["PORT"] = service.url.rpartition(":")[2]
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", examples],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_no_service_is_one_line() -> None:
    done = CliRunner().invoke(app, ["list", "--url", "http://127.0.0.1:9"])
    told = "No Throughline answers at http://127.0.0.1:9/readyz: start it there, or correct --url.\n"
    assert (done.exit_code, done.stderr) == (2, told)


@pytest.mark.parametrize("url", ["localhost:8000", "127.0.0.1", "ftp://127.0.0.1", "http://[::1"])
def test_what_is_no_address_of_a_service_is_one_line(url: str) -> None:
    done = CliRunner().invoke(app, ["list", "--url", url])
    told = f"{url!r} is no address of a service, such as http://127.0.0.1:8000.\n"
    assert (done.exit_code, done.stderr) == (2, told)
