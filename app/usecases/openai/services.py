"""Everything behind the routes of OpenAI's API."""

from __future__ import annotations

from dataclasses import dataclass

from app.usecases.admin.limiting import LimitService
from app.usecases.chat.starting import ChatService
from app.usecases.compaction.spending import SpendGuard
from app.usecases.history.conversations import ConversationService
from app.usecases.history.erasure import ErasureService
from app.usecases.openai.answering import StatelessAnswers
from app.usecases.openai.compacting import ArrayCompaction
from app.usecases.openai.forking import ForkService
from app.usecases.openai.responses import StoredResponses
from app.usecases.openai.sealed import SealedInputs
from app.usecases.openai.stored import StoredAnswers
from app.usecases.ports import JobQueue, NewId, Sealer
from app.usecases.shared.shell import Shell


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIServices:
    """The services, built once."""

    stateless: StatelessAnswers
    stored: StoredAnswers
    responses: StoredResponses
    compaction: ArrayCompaction
    sealed: SealedInputs
    forks: ForkService
    new_id: NewId
    """Of answers that are kept nowhere."""


def openai_services(
    shell: Shell,
    *,
    queue: JobQueue,
    sealer: Sealer,
    spending: SpendGuard,
    limits: LimitService,
    chat: ChatService,
    conversations: ConversationService,
    erasure: ErasureService,
) -> OpenAIServices:
    """Wire them."""
    forks = ForkService(shell, queue)
    return OpenAIServices(
        stateless=StatelessAnswers(shell, limits),
        stored=StoredAnswers(shell, chat=chat, conversations=conversations, forks=forks),
        responses=StoredResponses(shell, chat=chat, erasure=erasure),
        compaction=ArrayCompaction(shell, spending),
        sealed=SealedInputs(shell, sealer),
        forks=forks,
        new_id=shell.new_id,
    )
