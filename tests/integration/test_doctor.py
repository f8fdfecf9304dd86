"""The doctor over a real service finds what was written past the gate, and makes it again from the originals."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from app.cli import app, doctor
from app.client import StateVersion, Throughline
from app.core.model.policies.resolving import DEFAULT_PRESET
from app.core.model.state import ID_LETTERS
from app.devserver import Endpoints
from tests.acceptance.chaos import Books
from tests.acceptance.local import local_service
from tests.acceptance.service import running_service
from tests.gemini_server import running_gemini
from tests.servers import redis_database

Json = dict[str, Any]

POLICY: Final = {"context_window": 4_000, "max_tokens": -1}
FACTS: Final = (
    "Anna Petrova leads the Riga project, and its budget is 48,250 euros until 14 May 2026.",
    "We decided to use Postgres for bookings; the ticket is BK-2291 in the file /srv/app/booking.py.",
    "The ferry of the Nordwind line leaves at 18:45 from pier 7, and the cabin number is 512.",
)
VALUES: Final = ("BK-2291", "/srv/app/booking.py", "18:45", "512")
FILLER: Final = "The weather was grey again, and the coffee in the harbour kitchen tasted of old rain, number {}. "
STORY: Final = "Anna Petrova and the assistant planned the Riga project, chose a database, and booked the ferry for all"
SICK: Final[Mapping[str, tuple[Json, str]]] = {
    "error_text": ({"conversation_summary": "Error: 429 Too Many Requests"}, "error text"),
    "entry": ({"logos": ["Anna leads the project.", "503 Service Unavailable"]}, "error text"),
    "no_summary": ({"conversation_summary": "I'm sorry, but I cannot summarize this conversation."}, "no summary"),
    "empty": ({}, "empty summary"),
    "cut_off": ({"conversation_summary": f"{STORY}, because the hotel,"}, "cut off"),
}
TELLING: Final = ("error_text", "empty", "cut_off")
"""The cases that are repaired every day."""
EMPTY: Final[Json] = {"logos": [], "pathos": [], "abstract": [], "conversation_summary": ""}
WRITE_VERSION: Final = (
    "UPDATE state_versions SET state = CAST(:state AS jsonb), entries = '[]'"
    " WHERE conversation_id = CAST(:id AS uuid) AND version = :version"
)
WRITE_PRUNED: Final = (
    "UPDATE state_versions SET entries = CAST(:entries AS jsonb) WHERE conversation_id = CAST(:id AS uuid)"
    " AND version = (SELECT state_version FROM conversations WHERE id = CAST(:id AS uuid))"
)
PRUNED: Final[Json] = {
    "id": "N1",
    "field": "conversation_summary",
    "role": "narrative",
    "from_seqs": [],
    "since_version": 1,
    "pruned": True,
}
WRITE_CONVERSATION: Final = (
    "UPDATE conversations SET compressed_state = CAST(:state AS jsonb) WHERE id = CAST(:id AS uuid)"
)


QUOTE: Final = "The weather was grey again, and the coffee in the harbour kitchen tasted of old rain, number 8."
EARLIER: Final[Json] = {"model": "m", "outcome": "accepted", "reason": None, "duration_ms": 1, "usage": {}}
"""A call of a model, as it was recorded before prompts had versions."""
WITH_VERSION: Final = {**EARLIER, "prompt_version": "summary-2"}
OFFLINE: Final = {**EARLIER, "metered": False}
DAMAGE_VERSION: Final = (
    "UPDATE state_versions SET state = CAST(:state AS jsonb), entries = CAST(:entries AS jsonb)"
    " WHERE conversation_id = CAST(:id AS uuid) AND version = :version"
)
DAMAGE_COMPACTION: Final = (
    "UPDATE compactions SET attempts = CAST(:attempts AS jsonb), entries = jsonb_set(entries, '{ungrounded}', '1')"
    " WHERE id = CAST(:id AS uuid)"
)


class World:
    """A service, its database, and the commands."""

    def __init__(self, url: str, database_url: str) -> None:
        self.url = url
        self.books = Books(database_url)
        self.client = Throughline(url, trust_env=False)

    def folded(
        self, *, turns: int = 14, preset: str = DEFAULT_PRESET, facts: Sequence[str] = FACTS, filler: str = FILLER
    ) -> str:
        """A healthy conversation with a compaction."""
        id_ = str(self.client.create_conversation(title=f"Riga {uuid4().hex[:6]}", preset=preset, policy=POLICY).id)
        said = [facts[n // 2] if n % 2 == 0 and n // 2 < len(facts) else filler.format(n) * 2 for n in range(2 * turns)]
        messages = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(said)]
        self.client.append_many(id_, messages)
        assert self.client.compact(id_, keep_tail_messages=4).status == "applied"
        return id_

    def make_sick(self, id_: str, state: Json, empty: Json = EMPTY) -> None:
        """Write a state directly into the rows, past the gate."""
        version = self.client.conversation(id_).state_version
        text = json.dumps(empty | state)
        self.books.rows(WRITE_VERSION, id=id_, version=version, state=text)
        self.books.rows(WRITE_CONVERSATION, id=id_, state=text)

    def damage(self, id_: str, *, attempts: Json | None = None) -> StateVersion:
        """Write what earlier checks would have stored: a sentence in place of an item, and the count of these."""
        newest = next(self.client.states(id_, order="desc"))
        seq = next(one.seq for one in self.client.messages(id_) if QUOTE in one.content)
        kept = [_as_stored(one) for one in newest.provenance]
        item = {"id": "F1", "field": "logos", "role": "fact", "text": QUOTE, "from_seqs": [seq]}
        entries = [{**item, "since_version": newest.version}, *(one for one in kept if one["id"] != "F1")]
        facts = [one["text"] for one in entries if one["field"] == "logos"]
        state = json.dumps({**newest.state, "logos": facts})
        self.books.rows(DAMAGE_VERSION, id=id_, version=newest.version, entries=json.dumps(entries), state=state)
        self.books.rows(WRITE_CONVERSATION, id=id_, state=state)
        made = json.dumps([attempts or EARLIER])
        self.books.rows(DAMAGE_COMPACTION, id=str(newest.compaction_id), attempts=made)
        return next(self.client.states(id_, order="desc"))

    def run(self, *argv: str, url: str | None = None) -> Result:
        return CliRunner().invoke(app, ["doctor", *argv, "--url", url or self.url])

    def everything(self, id_: str) -> Json:
        """What a client can see of a conversation, and what a model is sent."""
        return {
            "export": self.client.export(id_),
            "context": self.client.look_at_context(id_).model_dump(mode="json"),
            "segments": [one.model_dump(mode="json") for one in self.client.segments(id_)],
        }

    def block(self, id_: str) -> str:
        """The block that stands for the folded messages in a context."""
        contents = [str(message["content"]) for message in self.client.look_at_context(id_).messages]
        return next(content for content in contents if content.startswith("<session_state>"))


def _as_stored(entry: Json) -> Json:
    roles = {letter: role for role, letter in ID_LETTERS.items()}
    kept = {name: value for name, value in entry.items() if name != "entry_id"}
    return {"id": entry["entry_id"], "role": roles[entry["entry_id"][0]], **kept}


def _with_long(names: Iterable[str], everyday: Collection[str]) -> list[Any]:
    """All names; those that are not for every day are marked as long."""
    return [name if name in everyday else pytest.param(name, marks=pytest.mark.long) for name in names]


@pytest.fixture(scope="module")
def redis_of_module(servers: Endpoints) -> str:
    return redis_database(servers.redis_url, 13)


@pytest.fixture(scope="module")
def world(module_database_url: str, redis_of_module: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("doctor")
    with local_service(folder, database_url=module_database_url, redis_url=redis_of_module, worker=False) as service:
        yield World(service.url, module_database_url)


@pytest.mark.daily(2)
@pytest.mark.parametrize("name", _with_long(SICK, TELLING))
@pytest.mark.case("59")
def test_each_sickness_is_found_and_repaired_from_the_originals(world: World, name: str) -> None:
    state, word = SICK[name]
    id_ = world.folded()
    messages = [one.model_dump() for one in world.client.messages(id_)]
    before = next(world.client.states(id_, order="desc"))
    world.make_sick(id_, state)

    found = world.run(id_)
    assert found.exit_code == doctor.EXIT_FOUND, found.output
    assert word in found.stdout
    assert "--repair" in found.stdout
    assert world.client.conversation(id_).state_version == before.version, "looking changes nothing"

    repaired = world.run(id_, "--repair")
    assert repaired.exit_code == 0, repaired.output
    assert f"repaired: {id_}: made anew from messages 1–{before.boundary_seq}" in repaired.stdout
    now = next(world.client.states(id_, order="desc"))
    assert now.boundary_seq == before.boundary_seq
    assert now.state == before.state, "the same originals give the same state"
    assert all(value in world.block(id_) for value in VALUES), world.block(id_)
    assert [one.model_dump() for one in world.client.messages(id_)] == messages
    assert world.run(id_).exit_code == 0


@pytest.mark.long
def test_a_summary_that_was_there_before_is_missed(world: World) -> None:
    id_ = world.folded()
    world.client.append_many(id_, [{"role": "user", "content": FILLER.format(n) * 2} for n in range(28, 48)])
    assert world.client.compact(id_, keep_tail_messages=4).status == "applied"
    state = next(world.client.states(id_, order="desc")).state
    assert world.run(id_).exit_code == 0

    world.make_sick(id_, {**state, "conversation_summary": ""})
    assert "missing, and was there before" in world.run(id_).stdout
    world.books.rows(WRITE_PRUNED, id=id_, entries=json.dumps([PRUNED | {"text": state["conversation_summary"]}]))
    assert world.run(id_).exit_code == 0, "for want of room it went, and the version says so"
    world.books.rows(WRITE_PRUNED, id=id_, entries="[]")
    assert world.run(id_, "--repair").exit_code == 0
    assert next(world.client.states(id_, order="desc")).state["conversation_summary"]
    assert world.run(id_).exit_code == 0


@pytest.mark.long
def test_the_healthy_are_left_as_they_are_to_the_byte(world: World) -> None:
    healthy, sick = world.folded(), world.folded()
    untouched = str(world.client.create_conversation(title="Nothing folded").id)
    world.make_sick(sick, SICK["error_text"][0])
    before = {id_: world.everything(id_) for id_ in (healthy, untouched)}

    done = world.run("--all", "--repair")
    assert done.exit_code == 0, done.output
    assert sick in done.stdout
    assert healthy not in done.stdout
    assert {id_: world.everything(id_) for id_ in (healthy, untouched)} == before
    assert "nothing found" in world.run("--all").stdout


def test_what_is_deleted_while_all_are_looked_at_does_not_end_the_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, sick = world.folded(), world.folded()
    world.make_sick(sick, SICK["error_text"][0])
    examine = doctor.examine

    def examine_after_deleting(client: Throughline, id_: str) -> doctor.SickConversation | None:
        if id_ == gone:
            client.delete_conversation(id_)
        return examine(client, id_)

    monkeypatch.setattr(doctor, "examine", examine_after_deleting)
    done = world.run("--all")
    world.client.delete_conversation(sick)
    assert done.exit_code == doctor.EXIT_FOUND, done.output
    assert sick in done.stdout
    assert gone not in done.stdout


@pytest.mark.long
@pytest.mark.control("59")
def test_control_a_doctor_that_looks_for_nothing_finds_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = world.folded()
    world.make_sick(id_, SICK["error_text"][0])
    with monkeypatch.context() as patch:
        patch.setattr(doctor, "findings", lambda *_args, **_kwargs: [])
        assert world.run(id_).exit_code == 0
    assert world.run(id_).exit_code == doctor.EXIT_FOUND


@pytest.mark.long
def test_a_few_messages_may_have_nothing_to_say(world: World) -> None:
    id_ = world.folded(turns=14)
    world.make_sick(id_, {})
    newest = next(world.client.states(id_, order="desc"))
    assert world.run(id_).exit_code == doctor.EXIT_FOUND
    for message in list(world.client.messages(id_))[4 : newest.boundary_seq]:
        world.books.rows("UPDATE messages SET status = 'erased' WHERE id = CAST(:id AS uuid)", id=str(message.id))
    assert world.run(id_).exit_code == 0, "four messages are left of it"


def test_what_ends_as_a_line_of_a_message_is_no_cut_off_summary(world: World) -> None:
    heading = "Anna Petrova still has to do the following for the Riga project:"
    id_ = world.folded(facts=[f"{heading}\n- book the ferry\n- pay 512 euros", *FACTS])
    world.make_sick(id_, {"logos": [f"User: {heading}"], "conversation_summary": f"{STORY}. Last (User): {heading}"})
    assert world.run(id_).exit_code == 0
    world.make_sick(id_, {"logos": [f"User: {heading[:-9]},"], "conversation_summary": f"{STORY}."})
    assert "cut off" in world.run(id_).stdout, "control: within a line nothing ends"


def test_messages_that_their_client_calls_commands_are_looked_at(world: World) -> None:
    id_ = world.folded()
    world.make_sick(id_, {})
    by_type = "UPDATE messages SET event_type = 'command' WHERE conversation_id = CAST(:id AS uuid)"
    world.books.rows(by_type, id=id_)
    assert world.run(id_).exit_code == doctor.EXIT_FOUND, "more than a few messages, and nothing told of them"
    world.books.rows(
        "UPDATE messages SET content = '/compact' WHERE role = 'user' AND conversation_id = CAST(:id AS uuid)", id=id_
    )
    assert world.run(id_).exit_code == 0, "the control: of typed commands and their answers nothing is to be told"


@pytest.mark.long
def test_what_is_too_short_for_a_state_is_served_as_it_is(world: World) -> None:
    id_ = world.folded()
    world.make_sick(id_, SICK["error_text"][0])
    first = next(world.client.messages(id_, order="asc"))
    move = "UPDATE {} SET boundary_seq = 1, {} = CAST(:message AS uuid) WHERE {} = CAST(:id AS uuid)"
    for table, column, key in (
        ("state_versions", "boundary_message_id", "conversation_id"),
        ("conversations", "compressed_at_message_id", "id"),
    ):
        world.books.rows(move.format(table, column, key), id=id_, message=str(first.id))
    done = world.run(id_, "--repair")
    assert done.exit_code == 0, done.output
    assert "too short for a state" in done.stdout
    shown = world.client.look_at_context(id_)
    assert not any("session_state" in str(message["content"]) for message in shown.messages[1:])
    assert {section.kind for section in shown.sections} == {"system", "tail"}


@pytest.mark.long
def test_json_for_programs(world: World) -> None:
    id_ = world.folded()
    world.make_sick(id_, SICK["error_text"][0])
    shown = json.loads(world.run(id_, "--json").stdout)
    (one,) = shown["found"]
    assert (shown["looked_at"], one["conversation_id"], one["outcome"]) == (1, id_, "found")
    finding = {"sickness": "error_text", "field": "conversation_summary", "text": "Error: 429 Too Many Requests"}
    assert one["findings"] == [finding]
    repaired = json.loads(world.run(id_, "--json", "--repair").stdout)["found"][0]
    assert (repaired["outcome"], repaired["state_version_now"]) == ("repaired", 3)


@pytest.mark.long
def test_what_earlier_checks_put_in_an_items_place_is_found_and_set_aside_by_code(world: World) -> None:
    id_ = world.folded()
    before = world.damage(id_)
    messages = [one.model_dump() for one in world.client.messages(id_)]
    assert world.run(id_).exit_code == 0, "it is asked for"

    found = world.run(id_, "--verify")
    assert found.exit_code == doctor.EXIT_FOUND, found.output
    assert "quote in an item's place" in found.stdout
    assert "--mend" in found.stdout
    assert world.client.conversation(id_).state_version == before.version, "looking changes nothing"

    done = json.loads(world.run(id_, "--mend", "--json").stdout)["found"][0]
    assert (done["outcome"], done["state_version_now"]) == ("mended", before.version + 1)
    now, old = list(world.client.states(id_, order="desc"))[:2]
    assert (now.made_by, now.boundary_seq) == ("verification", before.boundary_seq)
    assert [(one["reason"], one["before"], one["after"]) for one in now.repairs] == [("misplaced_quote", QUOTE, QUOTE)]
    doubted = [one["text"] for one in now.provenance if one["in_doubt"]]
    assert doubted == [QUOTE]
    assert {one["text"] for one in now.provenance} == {one["text"] for one in before.provenance}
    assert (old.version, old.provenance, old.state) == (before.version, before.provenance, before.state)
    assert [one.model_dump() for one in world.client.messages(id_)] == messages
    assert world.run(id_, "--verify").exit_code == 0
    assert not world.client.examine(id_, mend=True).repairs, "a second time nothing changes"


@pytest.mark.long
def test_control_what_other_checks_or_no_model_made_is_left_alone(world: World) -> None:
    for attempts in (WITH_VERSION, OFFLINE):
        id_ = world.folded()
        before = world.damage(id_, attempts=attempts)
        assert world.run(id_, "--mend").exit_code == 0
        assert world.client.conversation(id_).state_version == before.version


@pytest.mark.long
def test_damage_is_folded_again_from_the_newest_sound_version_where_a_model_summarizes(
    world: World, redis_of_module: str, tmp_path: Path
) -> None:
    id_ = world.folded()
    world.client.append_many(id_, [{"role": "user", "content": FILLER.format(n) * 2} for n in range(28, 48)])
    assert world.client.compact(id_, keep_tail_messages=4).status == "applied"
    before = world.damage(id_)
    with running_gemini() as gemini:
        settings = {"GOOGLE_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": gemini.url}
        database = world.books._url
        with running_service(
            tmp_path, database_url=database, redis_url=redis_of_module, worker=False, settings=settings
        ) as service:
            examined = world.client.examine(id_)
            gemini.script("compaction", default="empty")
            failed = world.run(id_, "--mend", url=service.url)
            gemini.script("compaction", default="honest")
            done = world.run(id_, "--mend", url=service.url)
            calls = len(gemini.requests("compaction"))
    now = next(world.client.states(id_, order="desc"))
    assert examined.sound_version == 1
    assert 0 < examined.messages < before.boundary_seq
    assert failed.exit_code == doctor.EXIT_FOUND
    assert "not repaired, as it was before" in failed.stdout
    assert "--mend --by-code" in failed.stdout
    assert done.exit_code == 0, done.output
    assert calls
    assert now.boundary_seq == before.boundary_seq
    assert QUOTE not in [one["text"] for one in now.provenance]
    assert world.run(id_, "--verify").exit_code == 0


@pytest.mark.long
def test_a_model_that_fails_leaves_it_as_it_was(
    world: World, redis_of_module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = world.folded()
    world.make_sick(id_, SICK["cut_off"][0])
    before = next(world.client.states(id_, order="desc"))
    with running_gemini() as gemini:
        gemini.script("compaction", default="empty")
        settings = {"GOOGLE_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": gemini.url}
        database = world.books._url
        with running_service(
            tmp_path, database_url=database, redis_url=redis_of_module, worker=False, settings=settings
        ) as failing:
            done = world.run(id_, "--repair", url=failing.url)
            now = next(world.client.states(id_, order="desc"))
            with monkeypatch.context() as patch:  # the control: nothing puts it back
                patch.setattr(doctor, "put_back", lambda _client, sick: sick.version.version)
                world.run(id_, "--repair", url=failing.url)
            lost = world.client.conversation(id_).compressed_state
    assert done.exit_code == doctor.EXIT_FOUND
    assert "not repaired, as it was before" in done.stdout
    assert "THROUGHLINE_COMPACTION_MODEL=offline" in done.stdout
    assert (now.state, now.boundary_seq) == (before.state, before.boundary_seq)
    assert now.version == before.version + 2
    assert lost is None
    world.client.restore(id_, now.version)
    assert world.run(id_, "--repair").exit_code == 0, "without the model it is repaired"


def test_what_cannot_be_looked_at_is_one_clear_line(world: World) -> None:
    for argv, words in (
        ([], "Say which conversations"),
        (["last", "--all"], "Say which conversations"),
        (["nonsense"], "is no conversation's id"),
        ([str(uuid4())], "No such conversation"),
    ):
        done = world.run(*argv)
        assert done.exit_code == 2, done.output
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
