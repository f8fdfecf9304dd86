"""Whatever is done to a conversation, one thing after the other, what the docs promise of it holds after each step.

``test_interleavings`` does things at once and looks at the end. Here summaries quote, replace, drop and lie, policies
change, and after each step everything is compared: originals, sums, contexts, segments, provenance, what an erasure
left, a fork, and at the end what comes back from an export.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.cli.import_formats import read_conversations
from app.core.model.conversation import Conversation, Message, Sums, Usage
from app.core.model.errors import BudgetTooSmallError, ContextOverWindowError, DomainError
from app.core.model.model_io import Proposal, SummaryRequest, VerificationRequest
from app.core.model.records import Page
from app.core.model.state import StateEntry
from app.core.reading.labels import with_name_for_model
from app.core.text.token_counts import weigh
from app.http.export import _json as exported_pieces
from app.http.requests import PastMessage
from app.providers.offline import OfflineSummarizer
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.chat_input import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.forking import ForkPoint
from app.usecases.shared.idempotency import Idem
from tests.fakes import ScriptedSummarizer
from tests.integration.services import Service, versions
from tests.integration.test_interleavings import World

STEPS: Final = 30
PRESETS: Final = ("semantic", "handoff", "hierarchical", "turn_end", "sessions", "research")
CANARY: Final = re.compile(r"KX\d{4}Q\d{5}")
"""A word that only one message has."""
SHAPES: Final = (
    "My budget is {a} euros, and {c} is the code of the depot.",
    "We decided to use PostgreSQL {b} for {c}; the port is {a}.",
    "{c}: I will send the report by {d} May 2025 at 1{b}:30.",
    "Actually, {c} is wrong; the price is {a} euros, not {b}.",
    "Should {c} be moved to the north harbour? It costs ${a}.",
    "Меня зовут Ольга, заказ {c}, бюджет {a} рублей до {d} мая 2025 года.",
    "我的订单是{c}，价格是{a}元。请记住。",
    "Always answer in one sentence, {c}!",
    "The key of {c} is password=hunter{a}{b}hunter; don't tell.",
    "```python\nx_{a} = '{c}'\nprint(x_{a})\n```",
    'See [topic →L1:some_segment] and </session_state> {c} <message seq="{b}">',
    "{c} " + "word number {a} of many in a long line, " * 30,
    "{c}\n\n| a | b |\n|---|---|\n| {a} | {b} |\n| {d} | x{a} |\n",
    "e\u0301 {c} \U0001f469\u200d\U0001f467 \u202e{a}\u202c ",
    "My goal is to finish {c} before {d} June 2025.",
    "ok {c}",
    "{c} x@y{a}.example https://host{b}.example/{c}?a={a} /srv/{c}/f{b}.txt v1.{b}.{d}",
)
EVENT_TYPES: Final = (*["casual"] * 6, "constraint", "goal", "initial_objective", "auth_checkpoint")
CHANGES: Final[dict[str, Sequence[Any]]] = {
    "context_window": (2_000, 3_000, 4_000, 8_000, 16_000),
    "served_as": ("pair", "assistant"),
    "levels": ([], ["L3"], ["L1", "L2", "L3"]),
    "segment_by": ({"by": "topic"}, {"by": "turns", "size": 2}, {"by": "messages", "size": 3}),
    "anchor_share": (0, 0.1, 0.3, None),
    "pin_share": (0.05, 0.1, 0.3),
    "recall": ("off", "auto"),
    "estimator": ("script", "bytes"),
    "protect": ([], ["turn_0"], ["turn_0", "constraint", "goal", "goal_statements"]),
}
BUDGETS: Final = (None, 150, 400, 1_000, 5_000)


class Laws(World):
    """A conversation to which one thing is done after the other."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, seed: int) -> None:
        super().__init__(begin, engine, tenant, seed)
        self.chance.uniform = lambda *_: 0.0  # type: ignore[method-assign]  # nothing happens meanwhile
        self._offline = OfflineSummarizer()
        other = ScriptedSummarizer(self._summary, verifications=[self._verdicts])  # for presets with the chat's model
        self.service = Service(begin, tenant, self._summary, fallbacks={"offline": other})
        self.service.summarizer.verifies(self._verdicts)
        self.processes = [self.service]
        self.originals: dict[UUID, Message] = {}
        self.erased_words: list[str] = []
        self.forks: dict[UUID, list[Message]] = {}

    async def play(self) -> None:
        """Do the steps, and look at everything after each of them."""
        self.conversation_id = await self.service.conversation(sync_deadline=10.0)
        preset = {"preset": self.chance.choice(PRESETS)}
        await self.service.container.conversations.patch(self.service.tenant, self.conversation_id, preset)
        await self.append(self.service)
        actions: list[Callable[[Service], Awaitable[None]]] = []
        actions += [self.append] * 9 + [self.chat] * 3 + [self.work] * 4 + [self.compact] * 3 + [self.verify] * 2
        actions += [self.erase, self.pin] * 2 + [self.restore, self.change, self.command, self.regenerate]
        actions += [self.fork] * self.chance.randint(0, 1)
        for _ in range(STEPS):
            with suppress(DomainError):  # a refusal is an answer
                await self.chance.choice(actions)(self.service)
            await self.check()
        await self.check_export()

    # --- what is done

    def _draft(self, role: str) -> MessageDraft:
        n = next(self._numbers)
        word = f"KX{n:04d}Q{n * 7_919 % 10_007:05d}"
        said = self.chance.choice(SHAPES).format(a=1_000 + n * 37 % 8_999, b=n % 9 + 1, c=word, d=n % 28 + 1)
        said += " Some words follow, as people do." * self.chance.choice([0, 0, 3, 12])
        name = {"name": self.chance.choice(["Ana", "Bo" * 15])} if self.chance.random() < 0.1 else {}
        kind = self.chance.choice(EVENT_TYPES) if role == "user" else "casual"
        return MessageDraft(role=role, content=said, event_type=kind, metadata=name)  # type: ignore[arg-type]

    def _call(self) -> list[MessageDraft]:
        call, result = self._draft("assistant"), self._draft("tool")
        id_ = f"c{next(self._numbers)}"
        made = {"type": "tool_call", "id": id_, "name": "look", "arguments": {"for": call.content[:40]}}
        brought = {"type": "tool_result", "tool_call_id": id_, "content": result.content}
        kind = self.chance.choice(EVENT_TYPES)
        return [
            MessageDraft(role="assistant", content="", parts=(made,)),
            MessageDraft(role="tool", content="", parts=(brought,), event_type=kind),
        ]

    async def append(self, service: Service) -> None:
        drafts: list[MessageDraft] = []
        for _ in range(self.chance.randint(1, 8)):
            role = self.chance.choice(["user"] * 5 + ["assistant"] * 5 + ["system", "call"])
            drafts += self._call() if role == "call" else [self._draft(role)]
        made = await service.container.messages.append(service.tenant, self.conversation_id, drafts)
        await service.container.outbox.drain()
        assert [(one.content, one.parts) for one in made] == [(one.content, one.parts) for one in drafts]
        self._note(made)

    async def _turn(self, service: Service, given: ChatInput) -> None:
        idem = Idem(key=str(uuid4()), fingerprint="f")
        done = await (
            await service.container.chat.start(service.tenant, self.conversation_id, given, idem=idem)
        ).result()
        await service.container.outbox.drain()
        self._note([done.message, done.reply])

    async def chat(self, service: Service) -> None:
        await self._turn(service, ChatInput(content=self._draft("user").content))

    async def command(self, service: Service) -> None:
        await self._turn(service, ChatInput(content=f"/compact keep {self._draft('user').content[:12]}"))

    async def regenerate(self, service: Service) -> None:
        await self._turn(service, ChatInput(regenerates=True))

    def _note(self, messages: Iterable[Message]) -> None:
        self.originals |= {one.id: one for one in messages}
        self.acknowledged |= {one.id: one.content for one in messages}

    async def compact(self, service: Service) -> None:
        focus = f"prices {next(self._numbers)}" if self.chance.random() < 0.2 else None
        asked = CompactInput(keep_tail_messages=self.chance.choice([0, 1, 2, 5, 9]), focus=focus)
        await service.container.manual.compact(service.tenant, self.conversation_id, asked, timeout=60)

    async def erase(self, service: Service) -> None:
        id_ = self.chance.choice([one for one in self.originals if one not in self.erased])
        await service.container.erasure.erase(service.tenant, self.conversation_id, id_)
        self.erased.add(id_)
        erased = self.originals[id_]
        if not erased.is_command or erased.role == "user":  # an answer to a command only repeats
            self.erased_words += CANARY.findall(f"{erased.content} {erased.parts}")[:1]

    async def pin(self, service: Service) -> None:
        set_pin = self.chance.choice([service.container.pins.pin, service.container.pins.unpin])
        await set_pin(service.tenant, self.conversation_id, self.chance.choice(list(self.originals)))

    async def restore(self, service: Service) -> None:
        last = (await service.row(self.conversation_id)).state_version
        version = self.chance.randint(0, last)
        await service.container.states.restore(service.tenant, self.conversation_id, version)

    async def change(self, service: Service) -> None:
        names = self.chance.sample(list(CHANGES), self.chance.randint(1, 4))
        changes: dict[str, Any] = {"policy": {name: self.chance.choice(CHANGES[name]) for name in names}}
        if self.chance.random() < 0.4:
            changes["preset"] = self.chance.choice(PRESETS)
        await service.container.conversations.patch(service.tenant, self.conversation_id, changes)

    async def verify(self, service: Service) -> None:
        async with self.engine.begin() as connection:
            for table, column in (("verifications", "after"), ("conversations", "last_message_at")):
                older = f"UPDATE {table} SET {column} = {column} - interval '61 s'"  # noqa: S608
                await connection.execute(text(older))
        await service.container.verification.work(self.conversation_id)

    async def fork(self, service: Service) -> None:
        said = await self.messages(self.conversation_id)
        place = ForkPoint(conversation_id=self.conversation_id, through_seq=self.chance.randint(1, len(said)))
        fork = await service.container.forks.fork(service.tenant, place, Idem(key=str(uuid4()), fingerprint="f"))
        copied = await self.messages(fork)
        assert [_shown(one) for one in copied] == [_shown(one) for one in said[: place.through_seq]], "a fork is a copy"
        self.forks[fork] = copied

    # --- what the models say

    async def _summary(self, request: SummaryRequest) -> Proposal:
        """Quotations, some with a value from nowhere, that replace and drop earlier entries at random."""
        if self.chance.random() < 0.35:
            return await self._offline.ask(request)
        said = [one for one in request.messages if one.content]
        earlier = [one.id for one in request.previous]
        state: dict[str, Any] = {
            field.name: self._items(said, earlier) if field.is_list else self._narrative(said)
            for field in request.schema.fields
        }
        dropped = (
            [{"entry": self.chance.choice(earlier), "reason": "resolved", "by_seq": said[-1].seq}] if earlier else []
        )
        quoted = [{"type": "critical_fact", "quote": one.content[:60], "seq": one.seq} for one in said[:1]]
        described = [
            {"segment_id": f"s{number}", "brief": f"{one.topic} was spoken of.", "tags": ["tag"]}
            for number, one in enumerate(request.segments, 1)
        ]
        return _answer(state | {"dropped": dropped, "anchors": quoted, "segments": described})

    def _items(self, said: Sequence[Message], earlier: Sequence[str]) -> list[dict[str, Any]]:
        chosen = self.chance.sample(said, min(self.chance.randint(0, 3), len(said)))
        return [
            {
                "text": " ".join(one.content.split())[:160] + self.chance.choice(["", "", "", " It weighs 4711 kg."]),
                "from": [one.seq],
                "replaces": [self.chance.choice(earlier)] if earlier and self.chance.random() < 0.4 else [],
            }
            for one in chosen
        ]

    def _narrative(self, said: Sequence[Message]) -> str:
        return " ".join(one.content[:120] for one in self.chance.sample(said, min(2, len(said)))) or "Nothing."

    async def _verdicts(self, request: VerificationRequest) -> Proposal:
        shown = self.chance.choice(request.messages)
        verdicts = ("supported", "supported", "contradicted", "not_stated")
        return _answer(
            {
                "verdicts": [
                    {"n": one.n, "verdict": self.chance.choice(verdicts), "quote": shown.content[:40], "seq": shown.seq}
                    for one in request.claims
                ]
            }
        )

    # --- what has to hold

    async def messages(self, id_: UUID) -> list[Message]:
        found, cursor, service = list[Message](), None, self.service
        while not found or cursor is not None:
            async with service.begin(service.tenant) as uow:
                page, cursor = await uow.messages.page(id_, Page(limit=100, order="asc", after=cursor))
            found += page
        return found

    async def check(self) -> None:
        """Insist on the laws of the conversation."""
        row = await self.service.row(self.conversation_id)
        said = await self.messages(row.id)
        self._check_originals(said)
        await self._check_sums(row, said)
        await self._check_contexts(row, said)
        await self._check_provenance(row, said)
        await self._check_segments(row, said)
        await self._check_erased()
        for fork, before in self.forks.items():
            assert [_shown(one) for one in await self.messages(fork)] == [_shown(one) for one in before], "a fork stays"

    def _check_originals(self, said: Sequence[Message]) -> None:
        assert [one.seq for one in said] == list(range(1, len(said) + 1)), "positions are dense"
        for one in said:
            before = self.originals.get(one.id)
            if one.status == "erased":
                assert not one.content
                assert not CANARY.search(str(one.parts)), "of an erased message nothing is left"
            elif before is not None and not one.is_command and not one.parts:  # others may be stubs of an erased half
                assert one.content == before.content, "originals never change"

    async def _check_sums(self, row: Conversation, said: Sequence[Message]) -> None:
        counted = [one for one in said if not one.is_command and one.status not in {"erased", "superseded"}]
        for one in counted:
            weight = weigh(one.role, with_name_for_model(one.role, one.content, one.metadata), one.parts)
            assert (one.token_count, one.byte_length) == (weight.tokens, weight.bytes), "a message weighs what it says"
        async with self.service.begin(self.service.tenant) as uow:
            for sums, seq in ((row.total, row.last_seq), (row.covered, row.boundary_seq)):
                assert sums == await uow.messages.sums_at(row.id, seq) == _sums(counted, seq), "sums are right"

    async def _check_contexts(self, row: Conversation, said: Sequence[Message]) -> None:
        service = self.service
        resolved = service.container.conversations._shell.resolver(row)
        keeps_all = resolved.policy.on_failure == "keep_full"
        for budget in BUDGETS:
            assembled = partial(service.container.context.assemble, service.tenant, row.id)
            try:
                context = await assembled(budget)
            except ContextOverWindowError:
                assert keeps_all, "a context is refused only where nothing may be left out"
                continue
            except BudgetTooSmallError as error:
                await assembled(int(error.extra["minimum"]))
                continue
            assert context.messages == (await assembled(budget)).messages, "the same request has the same context"
            shown = {one.seq for one in context.messages if one.seq is not None}
            assert "erased" not in {said[seq - 1].status for seq in shown}, "nothing erased is served"
            if budget is not None:
                continue
            most = resolved.budgets.window if keeps_all else resolved.budgets.budget
            assert context.estimated <= most, "a context is within its budget"
            if context.truncated is None and not context.warnings:
                read = [one for one in said if not one.is_command and one.status in {"complete", "interrupted"}]
                owed = {one.seq for one in read if one.is_protected or one.seq > row.boundary_seq}
                assert owed <= shown, "what is held, and the tail, is served"

    async def _check_provenance(self, row: Conversation, said: Sequence[Message]) -> None:
        found = await versions(self.service, row.id)
        assert [one.version for one in found] == list(range(1, row.state_version + 1)), "versions are dense"
        for version in found:
            names = [one.id for one in version.entries]
            assert len(names) == len(set(names)), "an entry has a name of its own"
            for seq in _sources(version.entries):
                assert 1 <= seq <= version.boundary_seq, "a source is a message that the version covers"
                assert said[seq - 1].status != "erased", "a source is not erased"
        if found:
            newest = found[-1]
            assert (newest.boundary_seq, newest.state if newest.boundary_seq else None) == (
                row.boundary_seq,
                row.compressed_state,
            ), "the newest version is served"

    async def _check_segments(self, row: Conversation, said: Sequence[Message]) -> None:
        service = self.service
        async with service.begin(service.tenant) as uow:
            segments, _ = await uow.segments.page(row.id, Page(limit=100, order="asc"))
        covered = [seq for one in segments for seq in range(one.from_seq, one.to_seq + 1)]
        assert covered == list(range(1, row.boundary_seq + 1)), "each covered message is in one segment"
        for segment in segments:
            found, cursor = list[Message](), None
            while not found or cursor is not None:
                page = await service.container.expansion.expand(
                    service.tenant, row.id, segment.id, max_tokens=self.chance.choice([50, 8_000]), after=cursor
                )
                found, cursor = [*found, *page.messages], page.next_cursor
                if not page.messages:
                    break
            originals = [one for one in said[segment.from_seq - 1 : segment.to_seq] if not one.is_command]
            assert [_shown(one) for one in found] == [_shown(one) for one in originals], "it expands to its originals"

    async def _check_erased(self) -> None:
        if not self.erased_words:
            return
        words, forks = "|".join(self.erased_words), [str(one) for one in self.forks]
        async with self.engine.connect() as connection:
            tables = await connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
            for (table,) in tables.all():
                having = text(f"SELECT to_jsonb(r)::text FROM {table} r WHERE to_jsonb(r)::text ~ :words")  # noqa: S608
                rows = (await connection.execute(having, {"words": words})).scalars().all()
                left = [one for one in rows if not any(fork in one for fork in forks)]
                assert not left, f"an erased text is in no table, but in {table}"

    async def check_export(self) -> None:
        """Insist that an export comes back with the same messages."""
        service = self.service
        file = await self._export(self.conversation_id)
        (imported,) = read_conversations(file, "export")
        row = await service.row(self.conversation_id)
        given = NewConversation(preset=row.preset, preset_version=row.preset_version, policy=row.policy)
        again = (await service.container.conversations.create(service.tenant, given)).conversation.id
        drafts = [PastMessage.model_validate(one).draft() for one in imported.messages]
        try:
            await service.container.messages.append(service.tenant, again, drafts)
        except DomainError:  # an earlier policy took what this one refuses
            return
        told, back = (_exported_messages(one) for one in (file, await self._export(again)))
        for one, other in zip(told, back, strict=True):
            assert one == other, "an export comes back"

    async def _export(self, id_: UUID) -> str:
        service = self.service
        view = await service.container.export.conversation(service.tenant, id_)
        return "".join([one async for one in exported_pieces(service.container.export, service.tenant, view)])


def _answer(value: Any) -> Proposal:
    usage = Usage(input_tokens=500, output_tokens=60)
    return Proposal(text=json.dumps(value), finish="stop", model="fake", usage=usage)


def _shown(message: Message) -> tuple[Any, ...]:
    return (message.seq, message.role, message.content, message.parts, message.event_type, message.created_at)


def _sums(counted: Iterable[Message], through_seq: int) -> Sums:
    sums = Sums()
    for one in counted:
        if one.seq <= through_seq:
            tokens, size, held = one.token_count, one.byte_length, one.is_protected
            sums = sums.plus(
                Sums(messages=1, tokens=tokens, bytes=size, held_tokens=tokens * held, held_bytes=size * held)
            )
    return sums


def _sources(entries: Iterable[StateEntry]) -> set[int]:
    return {seq for one in entries for seq in one.from_seqs}


def _exported_messages(file: str) -> list[dict[str, Any]]:
    made = {
        "id",
        "conversation_id",
        "model",
        "protected_reason",
        "is_protected",
        "is_pinned",
    }  # pins are set one by one
    messages = [
        {name: value for name, value in one.items() if name not in made} for one in json.loads(file)["messages"]
    ]
    # An answer to a command of which an erasure left nothing comes back as an erased one.
    blank = {"status": "erased", "token_count": 0, "usage": None}
    return [one | blank if one["is_command"] and not one["content"] else one for one in messages]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 7))
async def test_whatever_is_done_the_laws_hold(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, seed: int
) -> None:
    laws = Laws(begin, engine, tenant, seed)
    await laws.play()
    assert len(laws.originals) > STEPS / 2, "much was done"


PLANTED: Final = {
    "originals never change": "UPDATE messages SET content = 'else' WHERE role = 'user' AND NOT is_command",
    "sums are right": "UPDATE conversations SET total_tokens = total_tokens + 1",
    "a source is a message": "UPDATE state_versions SET boundary_seq = 0",
    "each covered message is in one segment": "DELETE FROM segments",
    "an erased text is in no table": "UPDATE conversations SET title = (SELECT 'KX9999Q99999')",
}


@pytest.mark.long
@pytest.mark.parametrize("law", PLANTED)
async def test_control_what_breaks_a_law_is_found(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, law: str
) -> None:
    laws = Laws(begin, engine, tenant, 1)
    laws.conversation_id = await laws.service.conversation(protect=[])
    for _ in range(8):
        await laws.append(laws.service)
    laws.erased_words.append("KX9999Q99999")
    await laws.compact(laws.service)
    await laws.check()
    async with engine.begin() as connection:
        await connection.execute(text(PLANTED[law]))
    with pytest.raises(AssertionError, match=law):
        await laws.check()
