"""Answers within a conversation, which is found, compared with the history that the client sends, or forked.

If a turn is running, the request waits for it, or follows it if that turn answers the same request. Clients of this API
repeat a request after a 409 by themselves, and would only get the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from app.core.context.reconciling import Reconciliation
from app.core.context.tools import MAX_CALLS
from app.core.model.errors import (
    ConflictError,
    ConversationMovedOnError,
    DomainError,
    FieldError,
    InvalidInputError,
    NotFoundError,
    NotRegenerableError,
    PreviousResponseNotFoundError,
    TurnInProgressError,
)
from app.core.model.records import Turn
from app.off_loop import off_loop
from app.storage.repositories.sizes import READ_BYTES
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.chat_input import ChatInput, ToolResultInput
from app.usecases.chat.replaying import own_results_after
from app.usecases.chat.starting import ChatService
from app.usecases.chat.turn_handle import TurnHandle
from app.usecases.history.appending import NO_MESSAGE
from app.usecases.history.conversations import ConversationService, NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.messages import MessageService
from app.usecases.openai.answer_events import BegunAnswer
from app.usecases.openai.answering import Prompt
from app.usecases.openai.conversation_names import ConversationName, conversation_named, derived_id
from app.usecases.openai.dead_turns import is_dead, turn_with_its_answer, waits_after
from app.usecases.openai.forking import ForkPoint, ForkService
from app.usecases.openai.openings import Openings, opening_of
from app.usecases.openai.repeated_messages import compare_stored_history, lines_of_drafts, without_repeated
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.shared.exchange import Exchange, exchange_of
from app.usecases.shared.idempotency import Idem, claim_key
from app.usecases.shared.shell import Shell

MAX_NEW_MESSAGES: Final = 1_000
"""The most messages that are added at once. A history brings more, so many at a time."""
RETRY_AFTER: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for an answer that is stored."""

    prompt: Prompt
    attempt: RequestAttempt
    patience: float
    """How many seconds the request may wait for a running turn."""
    preset: str | None = None
    """The preset of a conversation that is made for it; ``None`` = the default."""
    user: str | None = None
    """The end user of such a conversation."""
    echo: Mapping[str, Any] | None = None
    """The parts of the request that the response repeats."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The metadata of such a conversation."""


class StoredAnswers:
    """Begins turns for clients of OpenAI's API."""

    def __init__(
        self,
        shell: Shell,
        *,
        chat: ChatService,
        conversations: ConversationService,
        messages: MessageService,
        forks: ForkService,
    ) -> None:
        self._shell = shell
        self._messages = messages
        self._chat = chat
        self._conversations = conversations
        self._forks = forks
        self.openings = Openings(shell)

    async def under_name(
        self, tenant_id: UUID, name: ConversationName, request: Request, *, only_new: bool
    ) -> BegunAnswer | None:
        """Continue the conversation with that name; ``None`` if the request's history differs from the stored one.

        ``request`` has the whole history. With ``only_new``, messages among which none is an assistant's are all new
        and not a history.

        Raises:
            NotFoundError: The name is an id of the service, and there is no such conversation.
        """
        try:
            return await self._begin_under_name(tenant_id, name, request, only_new=only_new)
        except NotFoundError:
            if name.is_ours:
                raise
            # It was there: another request had made it, failed, and deleted it again. Now it is made for this one.
            return await self._begin_under_name(tenant_id, name, request, only_new=only_new)

    async def _begin_under_name(
        self, tenant_id: UUID, name: ConversationName, request: Request, *, only_new: bool
    ) -> BegunAnswer | None:
        async with self._shell.uow(tenant_id) as uow:
            found = await conversation_named(uow, tenant_id, name)
        conversation_id = (
            found.id if found else await self._create_conversation(tenant_id, request, derived_id(tenant_id, name))
        )
        idem = request.attempt.key(conversation_id.hex, fixes_place=False)
        before = await self._begun_before(tenant_id, idem, request)
        if before is not None:
            return before
        has_history = not only_new or any(draft.role in {"assistant", "tool"} for draft in request.prompt.messages)
        try:
            return await self._begin_when_free(tenant_id, conversation_id, request, idem, has_history=has_history)
        except DomainError:
            if found is None:
                await self.drop_if_empty(tenant_id, conversation_id)
            raise

    async def in_conversation(self, tenant_id: UUID, conversation_id: UUID, request: Request) -> BegunAnswer:
        """Add the request's messages to that conversation and answer them. Raises ``NotFoundError``."""
        idem = request.attempt.key(conversation_id.hex, fixes_place=False)
        before = await self._begun_before(tenant_id, idem, request)
        return before or _begun_or_conflict(await self._begin_when_free(tenant_id, conversation_id, request, idem))

    async def after_response(self, tenant_id: UUID, turn_id: UUID, request: Request) -> BegunAnswer:
        """Continue from the response that ``previous_response_id`` names: in its conversation, or else in a fork of it.

        It is a fork if the conversation went on after that response.

        Raises:
            PreviousResponseNotFoundError: There is no such response, or it failed.
            ForkInProgressError: The fork is still being made.
        """
        idem = request.attempt.key(turn_id.hex, fixes_place=True)
        before = await self._begun_before(tenant_id, idem, request)
        if before is not None:
            return before
        _input(request, request.prompt.messages)  # before anything is copied
        for _ in range(2):
            place, expected = await self._place_after(tenant_id, turn_id, request.patience)
            if expected is None:
                break
            try:
                return await self._at_end(tenant_id, place.conversation_id, request, idem, expected)
            except (ConversationMovedOnError, TurnInProgressError):
                continue  # another request continued from there first: fork
        fork_key = _fork_key(idem)
        fork_id = await self._forks.fork(tenant_id, place, fork_key)
        try:
            begun = await self._begin_when_free(tenant_id, fork_id, request, idem)
        except DomainError as error:
            if not error.retryable:
                await self._forks.drop_if_unused(tenant_id, fork_id, fork_key)
            raise
        return replace(_begun_or_conflict(begun), forked_from=place.conversation_id)

    async def in_new_conversation(self, tenant_id: UUID, request: Request) -> BegunAnswer:
        """Begin a new conversation for the request, without looking at stored ones.

        Equal openings are separate conversations, also if they come from one user: see ``openings``.
        """
        attempt, openings = request.attempt, self.openings
        opening = opening_of(attempt) if attempt.own is None else None
        if opening is not None and attempt.tries:
            await openings.wait_for_turn(tenant_id, opening)
        known = attempt.own or (opening if attempt.tries else None)
        before = await self._begun_before(tenant_id, known, request) if known else None
        before = before or await self._failed_before(tenant_id, request)
        if before is not None:
            return before
        given = _input(request, request.prompt.messages)
        if opening is not None and not await openings.claim(tenant_id, opening, is_retry=bool(attempt.tries)):
            opening = None
        try:
            return await self._begin_in_new_conversation(tenant_id, request, given, opening)
        except BaseException:
            if opening is not None:
                await openings.drop(tenant_id, opening)
            raise

    async def _begin_in_new_conversation(
        self, tenant_id: UUID, request: Request, given: ChatInput, opening: Idem | None
    ) -> BegunAnswer:
        async def note(uow: UnitOfWork, turn: Turn) -> None:
            if opening is not None:
                await self.openings.note(uow, opening, turn)

        idem = _key_of_new_conversation(request.attempt, opening)
        conversation_id = await self._create_conversation(tenant_id, request, None, idem)
        try:
            handle = await self._chat.start(tenant_id, conversation_id, given, idem=request.attempt.own, note_turn=note)
        except DomainError:
            await self.drop_if_empty(tenant_id, conversation_id, idem)
            raise
        return await self._begun_turn(tenant_id, handle)

    async def _failed_before(self, tenant_id: UUID, request: Request) -> BegunAnswer | None:
        idem = await self.openings.take_untold(tenant_id, request.attempt)
        with suppress(ConversationMovedOnError, InvalidInputError, TurnInProgressError):
            return await self._begun_before(tenant_id, idem, request) if idem else None
        return None

    async def of_turn(self, tenant_id: UUID, turn_id: UUID) -> BegunAnswer:
        """Follow a turn from its beginning, whether it runs or has ended. Raises ``NotFoundError``."""
        return await self._begun_turn(tenant_id, await self._chat.follow_turn(tenant_id, turn_id))

    async def _at_end(
        self, tenant_id: UUID, conversation_id: UUID, request: Request, idem: Idem, expected: UUID
    ) -> BegunAnswer:
        given = await self._new_input(tenant_id, conversation_id, request, expected=expected)
        handle = await self._chat.start(tenant_id, conversation_id, given, idem=idem)
        return await self._begun_turn(tenant_id, handle)

    async def _begin_when_free(
        self, tenant_id: UUID, conversation_id: UUID, request: Request, idem: Idem, *, has_history: bool = False
    ) -> BegunAnswer | None:
        """Begin the turn as soon as no other runs.

        Which messages of a history are new is decided again at each try, since the conversation grows. Returns ``None``
        if the history differs from the stored one.

        Raises:
            TurnInProgressError: Another turn runs for longer than the request may wait.
        """
        clock = self._shell.clock
        deadline = clock.monotonic() + request.patience
        async with self._shell.bus.subscribe(conversation_id) as wake_up:
            while True:
                try:
                    input_or_turn = (
                        await self._new_input_or_turn(tenant_id, conversation_id, request)
                        if has_history
                        else await self._new_input(tenant_id, conversation_id, request)
                    )
                    handle = (
                        await self._chat.start(tenant_id, conversation_id, input_or_turn, idem=idem)
                        if isinstance(input_or_turn, ChatInput)
                        else input_or_turn
                    )
                except (TurnInProgressError, ConversationMovedOnError):
                    if clock.monotonic() > deadline:
                        raise
                    await wake_up.wait(self._shell.timings.poll_seconds)
                except NotRegenerableError:
                    return None
                else:
                    return None if handle is None else await self._begun_turn(tenant_id, handle)

    async def _new_input(
        self, tenant_id: UUID, conversation_id: UUID, request: Request, expected: UUID | None = None
    ) -> ChatInput:
        new = await without_repeated(self._shell, tenant_id, conversation_id, request.prompt.messages)
        return _input(request, new, expected=expected)

    async def _new_input_or_turn(
        self, tenant_id: UUID, conversation_id: UUID, request: Request
    ) -> ChatInput | TurnHandle | None:
        """The new messages of the request's history, or the turn that already answers it.

        Returns ``None`` if the stored history is another one.

        A history that ends before the last stored reply asks for another reply in its place; one that ends before calls
        that wait for its client, for these calls.
        """
        messages = request.prompt.messages
        given = await off_loop(lines_of_drafts, messages)
        async with self._shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.get(conversation_id)
            own_tools = self._shell.resolver.own_tools
            reconciling = Reconciliation(given, await uow.turns.unanswered(conversation_id), own_tools)
            running = await uow.turns.running(conversation_id)
            await compare_stored_history(uow, conversation, reconciling)
            exchange = await exchange_of(uow, conversation_id) if reconciling.is_all_stored else Exchange()
            called = exchange.left_to_client(own_tools)
            # Who has these calls sends them again, with their results: this client never got them.
            is_earlier = reconciling.brings_other_results or reconciling.lacks_results
            lost = called and not is_earlier and messages and messages[-1].role != "assistant"
            calling = await uow.turns.replied_by(conversation_id, exchange.makers_of(called)) if lost else None
        waits, answering = exchange.awaits_reply, running or calling
        if waits and answering is not None:
            is_other = _asks_another_model(request, answering) or not _offers(request, exchange, called)
            return None if is_other else await self._chat.follow_turn(tenant_id, answering.id, counts=True)
        last = conversation.last_message_id or NO_MESSAGE
        if waits:
            return _input(request, (), expected=last)
        if reconciling.asks_for_new_reply:
            return replace(_input(request, (), expected=last), regenerates=True)
        if reconciling.new_from is None:
            return None
        new = messages[reconciling.new_from :]
        if len(new) > MAX_NEW_MESSAGES:
            _input(request, new[-1:])  # refused before anything is stored
            if running is not None:
                raise TurnInProgressError("a turn of this conversation runs: wait for it", retry_after=RETRY_AFTER)
        while len(new) > MAX_NEW_MESSAGES:
            beginning, new = new[:MAX_NEW_MESSAGES], new[MAX_NEW_MESSAGES:]
            stored = await self._messages.append(tenant_id, conversation_id, beginning, expected_last_message_id=last)
            last = stored[-1].id
        return _input(request, new, expected=last)

    async def _place_after(self, tenant_id: UUID, turn_id: UUID, patience: float) -> tuple[ForkPoint, UUID | None]:
        """Where a response ends; and the last message of its conversation, if the response ends there."""
        turn = await self._ended_turn(tenant_id, turn_id, patience)
        async with self._shell.uow(tenant_id) as uow:
            reply = await uow.messages.get(turn.conversation_id, turn.reply_id) if turn.reply_id else None
            if reply is None or reply.status == "erased":
                raise PreviousResponseNotFoundError(
                    "the response was deleted, or has no output: nothing goes on from it"
                )
            conversation = await uow.conversations.get(turn.conversation_id)
            following = await uow.messages.all_between(
                turn.conversation_id, reply.seq + 1, reply.seq + MAX_CALLS, max_bytes=READ_BYTES
            )
            last = await uow.messages.last(turn.conversation_id)
        # If the service's own tools were called together with the client's, their results come after the reply and
        # belong to it.
        own = own_results_after(reply, following, self._shell.resolver.own_tools)
        end = own[-1] if own else reply
        place = ForkPoint(conversation_id=turn.conversation_id, through_seq=end.seq)
        later = [message for message in following if message.seq > end.seq and message.status != "erased"]
        is_read = conversation.last_seq <= reply.seq + MAX_CALLS
        is_end = (is_read and not later) or (last is not None and last.id == end.id)
        return place, conversation.last_message_id if is_end else None

    async def _ended_turn(self, tenant_id: UUID, turn_id: UUID, patience: float) -> Turn:
        """The turn, once it has ended. Raises ``PreviousResponseNotFoundError`` and ``TurnInProgressError``."""
        try:
            async with self._shell.uow(tenant_id) as uow:
                turn = await uow.turns.get(turn_id)
            if turn.status != "running":
                return turn
            handle = await self._chat.follow_turn(tenant_id, turn_id)
            async with asyncio.timeout(patience), aclosing(handle.events()) as events:
                async for _ in events:
                    pass
            async with self._shell.uow(tenant_id) as uow:
                return await uow.turns.get(turn_id)
        except NotFoundError:
            raise PreviousResponseNotFoundError(f"there is no response 'resp_{turn_id.hex}'") from None
        except TimeoutError:
            raise TurnInProgressError("the response is still being made", retry_after=RETRY_AFTER) from None

    async def _begun_before(self, tenant_id: UUID, idem: Idem, request: Request) -> BegunAnswer | None:
        """The turn that an earlier try of the same request began, followed from its beginning.

        A first try only finds a turn that died, if its message still waits: a client repeats it without counting. If
        the answer was deleted, the same body asks anew; if the client gave the key itself, ``NotFoundError`` is raised.
        Raises ``ConversationMovedOnError`` if another reply answered the message of a turn that died.
        """
        async with self._shell.uow(tenant_id) as uow:
            found = await uow.idempotency.get(idem.key)
            if found is None or "turn_id" not in found.ref or found.fingerprint != idem.fingerprint:
                return None
            if idem.lifetime is not None and found.created_at < self._shell.clock.now() - idem.lifetime:
                return None
            turn = await turn_with_its_answer(uow, UUID(found.ref["turn_id"]))
            if idem.is_first_try and not (turn and await waits_after(uow, turn)):
                return None
        if turn is not None:
            return await self._begun_turn(tenant_id, await self._again(tenant_id, turn, request, idem))
        if request.attempt.own is not None:
            raise NotFoundError("the answer to this Idempotency-Key was deleted: ask again with a new key")
        async with self._shell.uow(tenant_id) as uow:
            if await claim_key(uow, idem, self._shell.clock.now()) == found.ref:  # else another try began a turn since
                await uow.idempotency.delete(idem.key)
                await uow.idempotency.delete(_fork_key(idem).key)
                await uow.commit()
        return None

    async def _again(self, tenant_id: UUID, turn: Turn, request: Request, idem: Idem) -> TurnHandle:
        """The answer of that turn.

        The message of a dead turn is answered again, with the model, tools and instructions of its request, unless
        another try is doing so already: that one is followed.
        """
        if not is_dead(turn):
            return await self._chat.follow_turn(tenant_id, turn.id, counts=True)
        try:
            return await self._chat.start(tenant_id, turn.conversation_id, _input(request, ()), idem=idem)
        except TurnInProgressError:
            async with self._shell.uow(tenant_id) as uow:
                (newest_id,) = await uow.turns.newest_ids(turn.conversation_id, limit=1)
                newest = await uow.turns.get(newest_id)
            if is_dead(newest) or newest.message_id != turn.message_id:
                raise
            return await self._chat.follow_turn(tenant_id, newest.id, counts=True)

    async def _create_conversation(
        self, tenant_id: UUID, request: Request, id_: UUID | None, idem: Idem | None = None
    ) -> UUID:
        new = NewConversation(id=id_, user_id=request.user, preset=request.preset, metadata=request.metadata)
        try:
            return (await self._conversations.create(tenant_id, new, idem=idem)).conversation.id
        except ConflictError:
            if id_ is None:
                raise
            return id_

    async def drop_if_empty(self, tenant_id: UUID, conversation_id: UUID, idem: Idem | None = None) -> None:
        """Delete a conversation that was made for a request which failed, unless another one has used it.

        ``idem`` is the key under which it was made: it is free again, so that a repeated request makes another one.
        """
        with suppress(NotFoundError):
            async with self._shell.uow(tenant_id) as uow:
                if (await uow.conversations.lock(conversation_id)).last_seq == 0:
                    await uow.conversations.delete(conversation_id)
                    if idem is not None:
                        await uow.idempotency.delete(idem.key)
                    await uow.commit()

    async def _begun_turn(self, tenant_id: UUID, handle: TurnHandle) -> BegunAnswer:
        """The turn, with the ids in its first event."""
        async with aclosing(handle.events()) as events:
            first = await anext(events)
        if first.error is not None:  # it runs in another process and cannot be followed
            raise first.error
        turn_id = UUID(first.data["turn_id"])
        async with self._shell.uow(tenant_id) as uow:
            turn = await uow.turns.get(turn_id)
            conversation = await uow.conversations.get(turn.conversation_id)
        reply_id = first.data.get("reply_id")
        return BegunAnswer(
            turn_id=turn_id,
            reply_id=UUID(reply_id) if reply_id else turn_id,
            started_at=turn.started_at,
            conversation=conversation,
            served=self._shell.resolver(conversation).gauge.tokens,
            forked_from=None,
            handle=handle,
        )


def _asks_another_model(request: Request, turn: Turn) -> bool:
    """Whether the request names another model than that of the turn: some frontends ask several at once."""
    asked, other = ((one or {}).get("model") for one in (request.echo, turn.request))
    return asked is not None and other is not None and asked != other


def _offers(request: Request, exchange: Exchange, calls: Collection[str]) -> bool:
    """Whether the request offers the tools of these calls, which wait in that exchange."""
    waiting = exchange.unanswered
    return {waiting[id_].get("name") for id_ in calls} <= request.prompt.options.names


def _fork_key(idem: Idem) -> Idem:
    """The key by which a repeated request finds the fork that was made for it."""
    return replace(idem, key=f"{idem.key}:fork")


def _key_of_new_conversation(attempt: RequestAttempt, opening: Idem | None) -> Idem | None:
    """The key by which a repeated request finds the conversation of a first try that died before its turn began."""
    idem = attempt.own or opening
    if idem is None:
        return None
    return replace(idem, key=f"{idem.key}:conversation", is_first_try=attempt.own is None and not attempt.tries)


def _input(request: Request, new: tuple[MessageDraft, ...], expected: UUID | None = None) -> ChatInput:
    """The input for a turn with these new messages; without any, for the turn that waits.

    Raises:
        InvalidInputError: There are too many messages, or the last one cannot be answered.
    """
    if len(new) > MAX_NEW_MESSAGES:
        raise _invalid(
            f"hold {len(new)} new ones, and at most {MAX_NEW_MESSAGES} are added at once: add the others before"
        )
    prompt = request.prompt
    base = ChatInput(
        instructions=prompt.options.instructions or None,
        tools=prompt.options.tools,
        settings=prompt.options.settings,
        model=prompt.model,
        expected_last_message_id=expected,
        request=request.echo,
    )
    if not new:
        return base
    last = new[-1]
    if last.role not in {"user", "tool"}:
        raise _invalid("must end with what the user says, or with the results of tools")
    if last.role == "user" and not last.content.strip() and not last.parts:
        raise InvalidInputError.of("content", "content cannot be empty")
    results = _leading_results(new)
    if last.role == "tool":
        return replace(base, results=results) if len(results) == len(new) else replace(base, history=new)
    chat_input = replace(base, content=last.content, parts=last.parts, metadata=last.metadata)
    if results and len(new) == len(results) + 1:
        return replace(chat_input, results=results)
    return replace(chat_input, history=new[:-1])


def _leading_results(new: tuple[MessageDraft, ...]) -> tuple[ToolResultInput, ...]:
    results: list[ToolResultInput] = []
    for draft in new:
        if draft.role != "tool":
            break
        results.append(_result_input(draft))
    return tuple(results)


def _result_input(draft: MessageDraft) -> ToolResultInput:
    result, *media = draft.parts
    return ToolResultInput(tool_call_id=result["tool_call_id"], content=result["content"], media=tuple(media))


def _invalid(message: str) -> InvalidInputError:
    return InvalidInputError(f"the messages {message}", errors=[FieldError(field="input", message=message)])


def _begun_or_conflict(begun: BegunAnswer | None) -> BegunAnswer:
    # Only requests whose history is compared lead to ``None``.
    if begun is None:
        raise ConflictError("the request is no longer being processed: send it again")
    return begun
