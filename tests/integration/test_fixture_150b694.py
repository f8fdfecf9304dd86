"""Every later version keeps the data that commit 150b694 stored, and serves them as that commit did."""

from __future__ import annotations

import asyncio
import contextlib
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest

from app.core.anchors import rendering
from app.core.model.anchors import AnchorType, Speaker
from app.core.model.state import StateSchema
from app.core.segments.markers import find_markers
from app.core.text.localization.catalogue import catalogue_of
from app.devserver import Endpoints
from app.storage.migrations import run_migrations
from bench.fixture import rows
from bench.fixture.__main__ import FOLDER, RECORDED_AT, ROWS, SERVED
from bench.fixture.served import Reader, Stored, by_name, differences, record
from bench.process import StandingClock, running
from tests.servers import ROOT, execute_sql, with_database

Json = dict[str, Any]

_DAYS: Final = "anchors that tell a time by the day on which they were said have that day before them"
_QUERY: Final = (
    "a query without a budget keeps to the recall share; recalled lines show weekdays and gaps, and what a tool said is"
    " recalled in a message of role tool, no longer as words of the user"
)
_AS_DATA: Final = "a message that reads like an element or a marker of the service is served as data"
_ONCE: Final = "a result that stands in its message's content too is served in its part alone"
_VERSIONS: Final = "calls name the version of their prompt: null of those that were made before"
_REPAIRS: Final = "new fields: what was done to a summary, and which entries are in doubt"
_VERIFIED: Final = "a version says who wrote it, and what looked at it; a policy, whether a model is to"
_CONTINUITY: Final = "a compaction says what can still be answered, where that was asked; a policy, how much at least"
_REASONING: Final = "a message has what its model showed of its thoughts; a policy, whether that is shown"
_OFFSETS: Final = "a message says with which offset its time was given"
_COMMANDS: Final = "a message says whether it is a typed command or its answer"
_CACHES: Final = "a policy says whether the provider is told to keep a cache"
_FILES: Final = "files of a conversation are a part of what a context weighs"
_VECTORS: Final = "a context says by what its messages were recalled"
_CAP: Final = "a policy may name the most that a state weighs"
_ADAPTIVE: Final = "a policy says whether thresholds follow the conversation; a gauge, where they are and why"
_SPEAKERS: Final = "an anchor says whose words it quotes"
_LABELS: Final = "a context says of each stored message its turn, its event type and whether it is held"
_REFUSED: Final = "the sessions preset refuses what it has no room to hold for ever, and has more room for it"
_DETAIL: Final = "a budget with room beyond the stored layout serves more of the segments"
_COUNTED: Final = (
    "a context counts its tokens as the gauge does: of sums, by what the provider taught of the conversation"
)
_ROUNDED: Final = "shares of a total are rounded so that none is above the budget that was asked for it"
_WEIGHED: Final = "what a context that shrinks gives up first, and what a digest tells, goes by what readers would keep"
_PRESET_VERSIONS: Final = "a conversation says which version of its preset it has"
_UNSQUEEZED: Final = "with a budget of its own a context still says how far the conversation is from a compaction"
EXPLAINED: Final[Mapping[str, str]] = {
    "*.contexts.small.gauge.tokens_until_compaction": _UNSQUEEZED,
    "handoff-??.contexts.small.messages.*.content": _WEIGHED,
    "queued.contexts.plain.*": _WEIGHED,
    "*turn_end*.contexts.small.messages.*.content": _WEIGHED,
    "long-message.contexts.plain.*": _WEIGHED,
    "*.compactions.*.repairs": _REPAIRS,
    "*.states.*.repairs": _REPAIRS,
    "*.states.*.provenance.*.in_doubt": _REPAIRS,
    "*.states.*.provenance.*.standing": _REPAIRS,
    "agent-*.contexts.plain.messages.*.content": _ONCE,
    "*.compactions.*.attempts.*.prompt_version": _VERSIONS,
    "*.compactions.*.prompt_version": _VERSIONS,
    "*.contexts.*query.*": _QUERY,
    "written-hierarchical.contexts.small.*": _DAYS,
    "hierarchical-??.contexts.small.*": _DETAIL,
    "research-??.contexts.small.*": _DETAIL,
    "semantic-??.contexts.small.*": _DETAIL,
    "written-handoff.contexts.small.*": _DETAIL,
    "written-research.contexts.small.*": _DETAIL,
    "failing.contexts.*.messages.*": _AS_DATA,
    "odd-texts.contexts.*.messages.*": _AS_DATA,
    "*.conversation.preset_version": _PRESET_VERSIONS,
    "*.conversation.policy.verify": _VERIFIED,
    "*.conversation.policy.verifier_model": _VERIFIED,
    "*.conversation.policy.continuity_floor": _CONTINUITY,
    "*.conversation.policy.continuity_probes": _CONTINUITY,
    "*.conversation.policy.reasoning": _REASONING,
    "*.messages.*.reasoning": _REASONING,
    "*.messages.*.is_command": _COMMANDS,
    "*.messages.*.utc_offset": _OFFSETS,
    "*.conversation.policy.cache": _CACHES,
    "*.conversation.policy.cache_ttl": _CACHES,
    "*.breakdown.files": _FILES,
    "*.contexts.*.recalled_by": _VECTORS,
    "*.conversation.policy.adaptive*": _ADAPTIVE,
    "*.gauge.target": _ADAPTIVE,
    "*.gauge.adaptive": _ADAPTIVE,
    "*.context.target": _ADAPTIVE,
    "*.context.adaptive": _ADAPTIVE,
    "*.compactions.*.continuity": _CONTINUITY,
    "*.contexts.*.messages.*.turn": _LABELS,
    "*.contexts.*.messages.*.event_type": _LABELS,
    "*.contexts.*.messages.*.is_protected": _LABELS,
    "*.conversation.policy.over_allotment": _REFUSED,
    "*-sessions*.conversation.policy.pin_share": _REFUSED,
    "sessions*.conversation.policy.pin_share": _REFUSED,
    "agent-hotel.conversation.policy.pin_share": _REFUSED,
    "protected.conversation.policy.pin_share": _REFUSED,
    "*.conversation.policy.state_cap": _CAP,
    "*.states.*.made_by": _VERIFIED,
    "*.states.*.verified": _VERIFIED,
    "*.states.*.verification": _VERIFIED,
    **{
        f"{name}.contexts.*.{counted}": _COUNTED
        for name in ("handoff-??", "agent-*", "written-*", "tool-calls", "failing")
        for counted in ("gauge.*", "sections.*.tokens")
    },
    **{
        f"{name}.conversation.context.breakdown.{part}": _ROUNDED
        for name in ("written-*", "tool-calls", "failing")
        for part in ("system", "held", "tail")
    },
    "*.anchors.*.speaker": _SPEAKERS,
    "*.anchors.*.pasted": _SPEAKERS,
}
"""Intended differences: a pattern of paths (such as ``*.contexts.*.gauge.background_at``) → the reason."""

_CHANGED: Final = "research-en"
_NO_MESSAGES: Final = frozenset({"earlier", "anchors", "no-such-segment"})
"""Names in markers that lead to a list, and one that is only the text of a message."""


def _recorded() -> dict[str, Json]:
    found: dict[str, Json] = json.loads(lzma.decompress((ROOT / FOLDER / SERVED).read_bytes()))
    return found


def _dump() -> rows.Dump:
    return rows.Dump.unpacked((ROOT / FOLDER / ROWS).read_bytes())


RECORDED: Final = _recorded()
STORED: Final = tuple(Stored(**each["stored"]) for each in RECORDED.values())
EVERYDAY: Final = STORED[::4]  # one in four, which are of each preset and of each language


@pytest.fixture(scope="module")
def loaded(servers: Endpoints) -> Iterator[Endpoints]:
    """A database with the recorded rows, migrated from their schema to the present one."""
    name, dumped = f"fixture_{uuid4().hex}", _dump()
    execute_sql(servers.database_url, f"CREATE DATABASE {name}")
    url = with_database(servers.database_url, name)
    run_migrations(url, dumped.revision)
    asyncio.run(rows.load(url, dumped))
    run_migrations(url)
    execute_sql(url, "UPDATE anchors SET token_count = token_count - 3")  # the weight of _line_of_then
    yield Endpoints(database_url=url, redis_url=servers.redis_url)
    execute_sql(servers.database_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _read(loaded: Endpoints, conversations: Sequence[Stored]) -> dict[str, Json]:
    """What is served with the blocks and the anchors' lines of that time; others leave other room for messages."""
    blocks = _awareness_blocks()

    def of_then(
        schema: StateSchema, locale: str, levels: Sequence[str] = (), *, anchor_share: float | None = None
    ) -> str:
        return blocks[_Kind(schema.name, catalogue_of(locale).language, tuple(levels), anchor_share != 0)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.usecases.shared.resolve.awareness_block", of_then)
        patch.setattr(rendering, "anchor_line", _line_of_then)
        async with running(loaded, StandingClock(RECORDED_AT)) as process:
            return await record(process, conversations)


def _line_of_then(
    type_: AnchorType,
    seq: int,
    content: str,
    _: Speaker = "user",
    *,
    pasted: bool = False,
    said_at: datetime | None = None,
    said_by: str = "",
) -> str:
    """An anchor's line of that time: without its speaker and without the day from which relative times count."""
    del said_at, said_by
    assert not pasted, "what was stored then is not said to be"
    return f"- {type_} #{seq}: {rendering.escape_served(' '.join(content.split()))}"


class _Kind(NamedTuple):
    """The values on which an awareness block depends."""

    schema: str
    language: str
    levels: tuple[str, ...]
    names_anchors: bool


def _awareness_blocks() -> dict[_Kind, str]:
    """The awareness blocks of that time, with which the system texts end."""
    blocks: dict[_Kind, str] = {}
    for each in RECORDED.values():
        of, text = each["served"]["conversation"], each["served"]["contexts"]["plain"]["messages"][0]["content"]
        policy = of["policy"]
        kind = _Kind(
            of["state_schema"] or policy["state_schema"],
            catalogue_of(of["locale"]).language,
            tuple(policy["levels"]),
            policy["anchor_share"] != 0,
        )
        block = text[text.rindex("## `<session_state>`") :]
        assert blocks.setdefault(kind, block) == block
    return blocks


@pytest.fixture(scope="module", params=[EVERYDAY, pytest.param(STORED, marks=pytest.mark.long)], ids=["some", "all"])
def now_served(loaded: Endpoints, request: pytest.FixtureRequest) -> dict[str, Json]:
    """Everything that is served now of some conversations; in the long runs, of all."""
    return asyncio.run(_read(loaded, request.param))


def _unexplained(now: Mapping[str, Json], *sections: str) -> list[str]:
    """The paths at which the conversations' sections differ from what was recorded."""
    then = {name: {section: RECORDED[name]["served"][section] for section in sections} for name in now}
    found = {name: {section: each[section] for section in sections} for name, each in now.items()}
    return [path for path in differences(then, found) if not any(fnmatchcase(path, pattern) for pattern in EXPLAINED)]


def test_the_fixture_holds_conversations_of_every_kind() -> None:
    tables = {table.name: len(table.rows) for table in _dump().tables}

    assert len(RECORDED) >= 40
    assert {each.tenant for each in STORED} == {"first", "second"}
    assert {each["served"]["conversation"]["preset"] for each in RECORDED.values()} == {
        "semantic",
        "handoff",
        "hierarchical",
        "turn_end",
        "sessions",
        "research",
    }
    assert all(tables.values()), tables


def test_every_message_is_as_it_was(now_served: dict[str, Json]) -> None:
    assert sum(len(each["messages"]) for each in now_served.values()) > 700
    assert not _unexplained(now_served, "messages")


def test_every_state_and_what_led_to_it_is_as_it_was(now_served: dict[str, Json]) -> None:
    assert sum(len(each["states"]) for each in now_served.values()) > 40
    assert not _unexplained(now_served, "conversation", "states", "compactions")


def test_every_anchor_and_every_level_of_a_segment_is_as_it_was(now_served: dict[str, Json]) -> None:
    assert not _unexplained(now_served, "anchors", "segments")


def test_every_stored_anchor_has_the_role_of_its_message_as_its_speaker(now_served: dict[str, Json]) -> None:
    roles = {message["id"]: message["role"] for each in now_served.values() for message in each["messages"]}
    speakers = [(one["speaker"], roles[one["message_id"]]) for each in now_served.values() for one in each["anchors"]]
    assert all(speaker == role for speaker, role in speakers)
    assert {speaker for speaker, _ in speakers} == {"user", "assistant"}


def test_every_context_is_served_as_it_was(now_served: dict[str, Json]) -> None:
    assert _unexplained(now_served, "contexts") == []


def test_every_whole_context_counts_what_the_gauge_counts(now_served: dict[str, Json]) -> None:
    plain = {name: each["contexts"]["plain"] for name, each in now_served.items()}
    whole = {name: context["gauge"] for name, context in plain.items() if context["truncated"] is None}
    assert len(whole) > len(plain) / 2
    assert whole == {name: now_served[name]["conversation"]["context"] for name in whole}


@pytest.mark.long
def test_every_marker_leads_back_to_the_originals(loaded: Endpoints) -> None:
    expanded = asyncio.run(_expanded(loaded))

    assert sum(map(len, expanded.values())) > 100
    for name, segments in expanded.items():
        originals = {message["seq"]: message for message in RECORDED[name]["served"]["messages"]}
        for segment, (first, last, messages) in segments.items():
            expected = [originals[seq] for seq in range(first, last + 1) if originals[seq]["event_type"] != "command"]
            assert [message["seq"] for message in messages] == [each["seq"] for each in expected], (name, segment)
            assert [(each["content"], each["parts"]) for each in messages] == [
                (each["content"], each["parts"]) for each in expected
            ], (name, segment)


@pytest.mark.long
def test_a_changed_row_is_noticed(loaded: Endpoints) -> None:
    """Control: one character of one message, and one word of a stored state."""
    stored = [each for each in STORED if each.name == _CHANGED]

    with _changed_rows(loaded, stored[0].id):
        now = asyncio.run(_read(loaded, stored))

    assert _unexplained(now, "messages") == [f"{_CHANGED}.messages.{len(now[_CHANGED]['messages']) - 1}.content"]
    assert any(path.startswith(f"{_CHANGED}.conversation.") for path in _unexplained(now, "conversation"))
    assert any(".messages." in path for path in _unexplained(now, "contexts"))
    assert not _differences_left(loaded, stored)


def _differences_left(loaded: Endpoints, stored: Sequence[Stored]) -> list[str]:
    """The differences after the control. There must be none, so that the order of the tests does not matter."""
    return _unexplained(asyncio.run(_read(loaded, stored)), "messages", "conversation", "contexts")


@contextlib.contextmanager
def _changed_rows(loaded: Endpoints, conversation_id: str) -> Iterator[None]:
    """Change the last message and the state, and afterwards restore what was there."""
    last = RECORDED[_CHANGED]["served"]["messages"][-1]["seq"]
    message = f"WHERE conversation_id = '{conversation_id}' AND seq = {last}"
    state = f"WHERE id = '{conversation_id}'"
    changed = "compressed_state = replace(compressed_state::text, 'the', 'thy')::jsonb"
    kept = f"SELECT id, compressed_state FROM conversations {state}"  # noqa: S608 - our own ids
    execute_sql(loaded.database_url, f"CREATE TABLE kept AS {kept}")
    execute_sql(loaded.database_url, f"UPDATE messages SET content = content || '.' {message}")  # noqa: S608 - ours
    execute_sql(loaded.database_url, f"UPDATE conversations SET {changed} {state}")  # noqa: S608 - ours
    try:
        yield
    finally:
        execute_sql(loaded.database_url, f"UPDATE messages SET content = left(content, -1) {message}")  # noqa: S608
        back = "compressed_state = kept.compressed_state FROM kept WHERE kept.id = conversations.id"
        execute_sql(loaded.database_url, f"UPDATE conversations SET {back}")  # noqa: S608 - ours
        execute_sql(loaded.database_url, "DROP TABLE kept")


async def _expanded(loaded: Endpoints) -> dict[str, dict[str, tuple[int, int, list[Json]]]]:
    """For each conversation and segment, its range and the originals to which its marker leads."""
    async with running(loaded, StandingClock(RECORDED_AT)) as process:
        return await by_name(process, STORED, _of_markers)


async def _of_markers(reader: Reader, stored: Stored) -> dict[str, tuple[int, int, list[Json]]]:
    """The originals of every marker in a conversation's contexts."""
    texts = _texts(RECORDED[stored.name]["served"]["contexts"])
    found = {marker.segment_id for text in texts for marker in find_markers(text)} - _NO_MESSAGES
    return {name: await reader.originals(name) for name in sorted(found)}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
