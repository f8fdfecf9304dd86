"""What the word index finds: whole small conversations, the right part of large ones, texts without words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Message
from app.core.text.words import stems
from app.storage.repositories import message_search, term_keys
from app.storage.repositories import messages as messages_module
from app.storage.repositories.message_search import FoundMessages
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.integration.rows import connection_of, make_tenant, message, stored, talk

KETTLE = "The copper kettle whistles in the pantry."
NOISE = ("Rain again over the harbour today.", "The harbour lights are on.", "Nothing new from the harbour.")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let conversations of more than twenty messages count as large, and a stem in more than eight as common."""
    monkeypatch.setattr(message_search, "WHOLE_UP_TO", 20)
    monkeypatch.setattr(message_search, "COMMON_FROM", 8)


async def conversation_of(
    begin: UnitOfWorkFactory, tenant: UUID, contents: Sequence[str], **fields: dict[str, Any]
) -> tuple[UUID, list[Message]]:
    """A conversation with these messages; ``m7={…}`` sets fields of the message with ``seq`` 7."""
    row = await stored(begin, tenant)
    made = [
        message(row.id, seq, content=content, **fields.get(f"m{seq}", {}))
        for seq, content in enumerate(contents, start=1)
    ]
    await talk(begin, tenant, made)
    return row.id, made


async def sources(
    begin: UnitOfWorkFactory, tenant: UUID, conversation_id: UUID, query: str, limit: int = 100
) -> FoundMessages:
    async with begin(tenant) as unit:
        return await unit.messages.sources(conversation_id, stems=stems(query), limit=limit)


def seqs(found: FoundMessages) -> list[int]:
    return [source.seq for source in found.sources]


def among_noise(count: int, **said: str) -> list[str]:
    """This many messages about a harbour; ``at7="…"`` sets another content of the seventh."""
    return [said.get(f"at{seq}", NOISE[seq % len(NOISE)]) for seq in range(1, count + 1)]


async def test_a_small_conversation_comes_whole(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    parts = ({"type": "text", "text": "and a text part"}, {"type": "tool_result", "tool_call_id": "c", "content": "42"})
    conversation_id, made = await conversation_of(
        begin,
        tenant,
        ["one", "/compact", "three", "gone", "five"],
        m2={"is_command": True},
        m4={"status": "erased"},
        m5={"parts": parts, "role": "tool"},
    )
    found = await sources(begin, tenant, conversation_id, "unrelated")
    assert [(source.seq, source.role, source.text) for source in found.sources] == [
        (1, "user", "one"),
        (3, "user", "three"),
        (5, "tool", "five\nand a text part\n42"),
    ]
    assert (found.total, found.documents) == (3, {})
    assert (found.sources[0].at, found.sources[0].tokens) == (made[0].created_at, 10)


async def test_of_a_large_one_the_rare_words_and_their_neighbours(
    begin: UnitOfWorkFactory, tenant: UUID, large: None
) -> None:
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(60, at30=KETTLE))
    found = await sources(begin, tenant, conversation_id, "Where does the copper kettle whistle?", limit=1)
    assert seqs(found) == [28, 29, 30, 31, 32]
    assert found.total == 60
    assert found.documents["copper"] == found.documents["kettl"] == 1


async def test_control_without_keys_a_large_one_has_nothing(
    begin: UnitOfWorkFactory, tenant: UUID, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_module, "keys_of", lambda messages: [[] for _ in messages])
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(60, at30=KETTLE))
    assert seqs(await sources(begin, tenant, conversation_id, "copper kettle")) == []


@pytest.mark.own_database  # rows that others deleted leave holes: the first ones found would not be the oldest
async def test_common_words_are_counted_about_and_found_together(
    begin: UnitOfWorkFactory, tenant: UUID, large: None
) -> None:
    """Each of the two words is in a third of the messages; only one of the last ten has both."""
    contents = ["Nothing.", "The lantern.", "The anchor."] * 40
    contents[110] = "The lantern on the anchor."
    conversation_id, _ = await conversation_of(begin, tenant, contents)
    found = await sources(begin, tenant, conversation_id, "lantern anchor", limit=3)
    assert 111 in seqs(found)
    assert all(30 <= found.documents[stem] <= 50 for stem in ("lantern", "anchor"))


@pytest.mark.own_database  # as above: the message that has both would come as one of the oldest of either
async def test_control_without_pairs_two_common_words_are_not_found_together(
    begin: UnitOfWorkFactory, tenant: UUID, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "_MAX_PAIRED_STEMS", 1)
    contents = ["Nothing.", "The lantern.", "The anchor."] * 40
    contents[110] = "The lantern on the anchor."
    conversation_id, _ = await conversation_of(begin, tenant, contents)
    assert 111 not in seqs(await sources(begin, tenant, conversation_id, "lantern anchor", limit=3))


@pytest.mark.own_database  # as above
async def test_pairs_of_common_words_that_could_change_nothing_are_not_sought(
    begin: UnitOfWorkFactory, tenant: UUID, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four words, the rarer first, each common, and messages that hold any two of them."""
    words = ("anchor", "lantern", "kettle", "barrel")
    contents = [f"The {one}." for place, one in enumerate(words) for _ in range(20 + 10 * place)]
    contents += [f"The {one} and the {other}." for one, other in combinations(words, 2) for _ in range(4)]
    conversation_id, _ = await conversation_of(begin, tenant, contents)
    sought = sought_pairs(monkeypatch)

    few = await sources(begin, tenant, conversation_id, " ".join(words), limit=3)
    pairs_for_few = len(sought)
    everything = await sources(begin, tenant, conversation_id, " ".join(words), limit=200)
    pairs_for_all = len(sought) - pairs_for_few
    monkeypatch.setattr(message_search, "_PAIRS_AT_ONCE", 100)

    assert (pairs_for_few, pairs_for_all) == (2, 6)
    assert few == await sources(begin, tenant, conversation_id, " ".join(words), limit=3)
    assert everything == await sources(begin, tenant, conversation_id, " ".join(words), limit=200)


def sought_pairs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The pairs of words that are sought together from now on."""
    sought: list[tuple[int, int]] = []
    lists = message_search.MessageSearch._messages_holding_both

    async def noting(of: message_search.MessageSearch, pairs: Sequence[tuple[int, int]]) -> list[frozenset[int]]:
        sought.extend(pair for pair in pairs if pair[0] != pair[1])
        return await lists(of, pairs)

    monkeypatch.setattr(message_search.MessageSearch, "_messages_holding_both", noting)
    return sought


@pytest.mark.own_database  # as above
async def test_which_messages_hold_a_common_word_is_looked_for_once_until_something_is_erased(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, large: None
) -> None:
    conversation_id, made = await conversation_of(begin, tenant, among_noise(60, at30=KETTLE))
    with looked_for(engine) as asked:
        common = await sources(begin, tenant, conversation_id, "harbour")
        assert common == await sources(begin, tenant, conversation_id, "harbour")
    assert len(asked) == 1
    with looked_for(engine) as asked:
        for _ in range(2):
            await sources(begin, tenant, conversation_id, "kettle harbour")
    assert len(asked) == 2, "the control: the next message may hold a word that is not common"

    async with begin(tenant) as unit:
        gone = message(conversation_id, 1, id=made[0].id, content="", status="erased", token_count=0, byte_length=0)
        await unit.messages.erase(conversation_id, [gone])
        await unit.conversations.update(conversation_id, content_epoch=1)
        await unit.commit()
    with looked_for(engine) as asked:
        after = await sources(begin, tenant, conversation_id, "harbour")
    assert len(asked) == 1
    assert (1 in seqs(common), 1 in seqs(after)) == (True, False)


@pytest.fixture
def long(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let conversations of over a hundred messages be sampled, and a stem in more than thirty count as abundant."""
    monkeypatch.setattr(message_search, "SAMPLED_FROM", 100)
    monkeypatch.setattr(message_search, "SAMPLED_MESSAGES", 40)
    monkeypatch.setattr(message_search, "ABUNDANT_FROM", 30)


@pytest.mark.own_database  # as above
async def test_an_abundant_word_is_not_looked_up_where_others_lead_to_enough(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, long: None
) -> None:
    contents = ["The lantern and the anchor.", "The lantern.", "The anchor.", "Nothing."] * 40
    contents[70] = "The copper kettle."
    conversation_id, _ = await conversation_of(begin, tenant, contents)
    with looked_for(engine) as asked:
        found = await sources(begin, tenant, conversation_id, "lantern anchor", limit=5)
    assert len(asked) == 1, "the pair alone"
    assert {13, 17, 21, 25, 29} <= {*seqs(found)}, "the newest of those that were found"
    assert all(70 <= found.documents[stem] <= 90 for stem in ("lantern", "anchor"))

    with looked_for(engine) as asked:
        rare = await sources(begin, tenant, conversation_id, "kettle lantern", limit=1)
    assert len(asked) == 1
    assert 71 in seqs(rare)


@pytest.mark.own_database  # as above
async def test_an_abundant_word_is_looked_up_where_nothing_else_leads_to_enough(
    begin: UnitOfWorkFactory, tenant: UUID, long: None
) -> None:
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(160, at30=KETTLE))
    found = await sources(begin, tenant, conversation_id, "kettle harbour", limit=20)
    assert 30 in seqs(found)
    assert len(seqs(found)) > 10, "its neighbours, and the first with the abundant word"


async def test_messages_are_sampled_anew_when_there_are_more_or_some_were_erased(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, long: None
) -> None:
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(200))

    async def samples() -> int:
        with looked_for(engine, "SELECT messages.term_keys") as asked:
            await sources(begin, tenant, conversation_id, "harbour")
        return len(asked)

    assert (await samples(), await samples()) == (1, 0)
    await talk(begin, tenant, [message(conversation_id, seq, content="Rain.") for seq in range(201, 224)])
    assert await samples() == 0
    await talk(begin, tenant, [message(conversation_id, 224, content="Rain.")])
    assert (await samples(), await samples()) == (1, 0)
    async with begin(tenant) as unit:
        await unit.conversations.update(conversation_id, content_epoch=1)
        await unit.commit()
    assert (await samples(), await samples()) == (1, 0)


@contextmanager
def looked_for(engine: AsyncEngine, sign: str = "@>") -> Iterator[list[str]]:
    """Every statement within the block that looks for messages by their words, or that contains another sign."""
    asked: list[str] = []

    def keep(_: object, __: object, statement: str, *___: object) -> None:
        asked.extend([statement] if sign in statement else [])

    event.listen(engine.sync_engine, "before_cursor_execute", keep)
    try:
        yield asked
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", keep)


async def test_the_more_are_looked_at_the_more_come_with_their_neighbours(
    begin: UnitOfWorkFactory, tenant: UUID, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "COMMON_FROM", 100)
    monkeypatch.setattr(message_search, "MIN_CENTRES", 40)
    contents = ["Nothing.", "Quiet.", "Calm.", "The lantern.", "Quiet.", "Calm.", "Nothing."] * 60
    conversation_id, _ = await conversation_of(begin, tenant, contents)
    few = await sources(begin, tenant, conversation_id, "lantern", limit=60)
    many = await sources(begin, tenant, conversation_id, "lantern", limit=240)

    assert len(seqs(few)) == 40 * 5 + 20
    assert len(seqs(many)) == 60 * 5, "a quarter of 240 is all there are"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Медный чайник свистит в кладовой", "Где наши медные чайники?"),
        ("铜水壶在储藏室里", "储藏室里有什么"),
        ("銅のやかんは倉庫にあります", "倉庫のやかん"),
        ("주전자는 창고에 있습니다", "주전자는 어디에 있습니까"),
        ("The part is ZX-4471", "what is part ZX-4471"),
    ],
)
async def test_other_scripts(begin: UnitOfWorkFactory, tenant: UUID, large: None, said: str, asked: str) -> None:
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(60, at41=said))
    assert 41 in seqs(await sources(begin, tenant, conversation_id, asked, limit=1))


async def test_neighbours_are_of_the_same_conversation_and_end_with_it(
    begin: UnitOfWorkFactory, tenant: UUID, large: None
) -> None:
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(30, at1=KETTLE))
    other, _ = await conversation_of(begin, tenant, among_noise(30, at16=KETTLE))
    assert seqs(await sources(begin, tenant, conversation_id, "kettle")) == [1, 2, 3]
    assert seqs(await sources(begin, tenant, other, "kettle")) == list(range(14, 19))


async def test_commands_and_erased_messages_are_not_found(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, large: None
) -> None:
    conversation_id, made = await conversation_of(
        begin, tenant, among_noise(60, at20=KETTLE, at40=KETTLE), m40={"is_command": True}
    )
    assert seqs(await sources(begin, tenant, conversation_id, "kettle")) == list(range(18, 23))
    async with begin(tenant) as unit:
        gone = message(conversation_id, 20, id=made[19].id, content="", status="erased", token_count=0, byte_length=0)
        await unit.messages.erase(conversation_id, [gone])
        await unit.commit()
    assert seqs(await sources(begin, tenant, conversation_id, "kettle")) == []
    async with engine.connect() as connection:
        keys = await connection.execute(
            text("SELECT DISTINCT term_keys FROM messages WHERE conversation_id = :id AND seq IN (20, 40)"),
            {"id": conversation_id},
        )
        assert keys.all() == [([],)]


async def test_two_tenants_with_the_same_ids(begin: UnitOfWorkFactory, tenant: UUID, large: None) -> None:
    """The keys are the same, since they are made from the conversation's id; the tenant is a further condition."""
    other, same = await make_tenant(begin, f"other {uuid4()}"), uuid4()
    for owner, contents in ((tenant, among_noise(40, at9=KETTLE)), (other, among_noise(40, at29=KETTLE))):
        await stored(begin, owner, id=same)
        await talk(begin, owner, [message(same, seq, content=said) for seq, said in enumerate(contents, start=1)])
    assert 9 in seqs(await sources(begin, tenant, same, "kettle"))
    assert 9 not in seqs(await sources(begin, other, same, "kettle"))
    async with begin(tenant) as unit:
        assert [found.seq for found in await unit.messages.containing(same, ["Kettle"], stems=["kettl"], limit=9)] == [
            9
        ]


async def test_many_stems_are_one_statement_and_bounded(begin: UnitOfWorkFactory, tenant: UUID, large: None) -> None:
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(40, at9=KETTLE))
    words = "kettle " + " ".join(f"word{number}x" for number in range(5_000))
    found = await sources(begin, tenant, conversation_id, words)
    assert 9 in seqs(found)
    assert len(found.documents) == message_search.MAX_STEMS
    assert seqs(await sources(begin, tenant, conversation_id, "?!")) == []


async def test_holding_a_text(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    part = {"type": "text", "text": 'He said "Über\nALLES" loudly'}
    conversation_id, _ = await conversation_of(
        begin,
        tenant,
        ["to be  or\nnot to be", "100% sure_thing ;-)", "see part", "TO BE OR NOT TO BE", "to be 🎉", "to be"],
        m3={"parts": (part,)},
        m6={"status": "erased"},
    )

    async def holding(*texts: str, words: Sequence[str] = (), limit: int = 9) -> list[int]:
        async with begin(tenant) as unit:
            found = await unit.messages.containing(conversation_id, texts, stems=words, limit=limit)
        return [source.seq for source in found]

    assert await holding("to be or not to be") == [4, 1]
    assert await holding("to be") == [5, 4, 1]
    assert await holding("to be", limit=2) == [5, 4]
    assert await holding("🎉") == [5]
    assert await holding("0% sure_thing") == [2]
    assert await holding("0%thing") == []
    assert await holding('"über alles"') == [3]
    assert await holding("to be", "not") == [4, 1]
    assert await holding("sure_thing", words=stems("thing")) == [2]
    assert await holding("sure_thing", words=["absent"]) == []


async def test_holding_looks_among_the_newest_only(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "MAX_SCANNED_MESSAGES", 2)
    conversation_id, _ = await conversation_of(begin, tenant, ["to be"] * 4)
    async with begin(tenant) as unit:
        assert [found.seq for found in await unit.messages.containing(conversation_id, ["be"], stems=(), limit=9)] == [
            4,
            3,
        ]


async def test_at_seqs(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    conversation_id, made = await conversation_of(
        begin, tenant, ["one", "two", "three", "four"], m2={"is_command": True}, m3={"status": "erased"}
    )
    async with begin(tenant) as unit:
        assert await unit.messages.at_seqs(conversation_id, [4, 2, 1, 3, 99]) == [made[0], made[3]]
        assert await unit.messages.at_seqs(conversation_id, []) == []


async def test_demands_are_a_users_constraints_and_goals(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    conversation_id, _ = await conversation_of(
        begin,
        tenant,
        ["one", "two", "three", "four", "five", "six", "seven"],
        m1={"event_type": "constraint"},
        m2={"event_type": "constraint", "role": "assistant"},
        m3={"event_type": "goal", "status": "erased"},
        m4={"protected_reason": "goal_statement"},
        m5={"event_type": "initial_objective"},
        m7={"event_type": "goal"},
    )
    async with begin(tenant) as unit:
        assert await unit.messages.goals_and_constraints(conversation_id, [6, 5, 4, 3, 2, 1, 99]) == [1, 4, 5]
        assert await unit.messages.goals_and_constraints(conversation_id, []) == []


async def test_the_index_is_used_behind_row_level_security(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    """Only the view allows this: of the table Postgres would read every row, for fear of what ``@>`` might reveal."""
    conversation_id, _ = await conversation_of(begin, tenant, among_noise(40))
    key = term_keys.TermKeys(conversation_id).of_stem("harbour")
    plans: dict[str, str] = {}
    asked: list[str] = []

    def keep(_: object, __: object, statement: str, *___: object) -> None:
        asked.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", keep)
    async with UnitOfWork(engine, tenant) as unit:
        await unit.messages.sources(conversation_id, stems=["harbour"], limit=9, neighbours=False)
        await unit.messages.containing(conversation_id, ["harbour"], stems=["harbour"], limit=9)
        event.remove(engine.sync_engine, "before_cursor_execute", keep)
        connection = await connection_of(engine, unit.session)
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        for source in ("message_keys", "messages"):
            asking = f"EXPLAIN SELECT seq FROM {source} WHERE term_keys @> ARRAY[CAST(:key AS bigint)]"  # noqa: S608
            statement = text(asking)
            plans[source] = "\n".join((await connection.execute(statement, {"key": key})).scalars())
    assert "ix_messages_terms" in plans["message_keys"]
    assert "ix_messages_terms" not in plans["messages"], "the control: then no view is needed"
    by_key = [statement for statement in asked if "@>" in statement]
    assert len(by_key) == 2
    assert all("FROM message_keys" in statement for statement in by_key)


def test_a_key_belongs_to_one_conversation() -> None:
    one, other = uuid4(), uuid4()
    assert term_keys.TermKeys(one).of_stem("kettl") == term_keys.TermKeys(one).of_stem("kettl")
    assert term_keys.TermKeys(one).of_stem("kettl") != term_keys.TermKeys(other).of_stem("kettl")
    assert term_keys.TermKeys(one).of_text("Kettles, kettle; KETTLE") == [term_keys.TermKeys(one).of_stem("kettl")]
