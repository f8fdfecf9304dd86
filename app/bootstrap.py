"""Builds all services from the settings (the composition root), for the API, the worker and the CLI."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from uuid import uuid4

from pydantic import SecretStr

from app.core.model.errors import DependencyUnavailableError
from app.core.model.model_io import OFFLINE, ToolSpec
from app.core.model.usage_limits import Limits
from app.infrastructure.clock import SystemClock
from app.infrastructure.counters import LocalCounters, RedisCounters
from app.infrastructure.event_bus import RedisEventBus
from app.infrastructure.ids import new_id, owner_name
from app.infrastructure.job_queue import CeleryJobQueue
from app.infrastructure.metrics import ProcessMeter
from app.infrastructure.processes import ProcessPool
from app.infrastructure.sealing import AesSealer
from app.infrastructure.turn_streams import RedisTurnStreams
from app.off_loop import WorkShares
from app.providers.keys import Keys
from app.providers.python_tools import load_tools
from app.providers.registry import ModelRegistry
from app.settings import Settings
from app.storage.connection_shares import ConnectionShares
from app.storage.database import TENANT_CONNECTIONS, DatabaseState, make_engine, ping, row_security
from app.storage.schema_fit import schema_complaint
from app.storage.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from app.usecases.admin.audit import AuditService
from app.usecases.admin.keys import KeyService
from app.usecases.admin.limiting import LimitService
from app.usecases.admin.measuring import Measuring
from app.usecases.admin.sessions import SessionService
from app.usecases.admin.stats import StatsService
from app.usecases.caching.caches import CacheService
from app.usecases.chat.lookups import Lookups
from app.usecases.chat.starting import ChatService
from app.usecases.chat.tool_loop import ToolLoop
from app.usecases.chat.toolbox import Toolbox
from app.usecases.chat.turn import TurnRunner
from app.usecases.compaction.commands import CommandRunner
from app.usecases.compaction.inline import InlineCompaction
from app.usecases.compaction.manual import ManualCompaction
from app.usecases.compaction.run import CompactionService
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.compaction.sweeper import Sweeper
from app.usecases.context.context import ContextService
from app.usecases.context.embedding import EmbeddingService, embedder_of
from app.usecases.context.requests import ContextRequests
from app.usecases.context.search import SearchService
from app.usecases.context.similarity import SimilarityService
from app.usecases.files.attaching import FileService
from app.usecases.files.copies import FileCopyService
from app.usecases.files.serving import FileServing
from app.usecases.history.anchors import AnchorService
from app.usecases.history.conversations import ConversationService
from app.usecases.history.erasure import ErasureService
from app.usecases.history.events import EventFeed
from app.usecases.history.export import ExportService
from app.usecases.history.messages import MessageService
from app.usecases.history.pins import PinService
from app.usecases.history.provider_copies import ProviderCopyService
from app.usecases.history.releasing import ReleaseService
from app.usecases.history.removing import RemovalService
from app.usecases.history.retaining import RetentionService
from app.usecases.history.states import StateService
from app.usecases.openai.answering import StatelessAnswers
from app.usecases.openai.compacting import ArrayCompaction
from app.usecases.openai.forking import ForkService
from app.usecases.openai.sealed_inputs import SealedInputs
from app.usecases.openai.services import OpenAIServices
from app.usecases.openai.stored_answers import StoredAnswers
from app.usecases.openai.stored_responses import StoredResponses
from app.usecases.ports import Clock, Counters, EventBus, InThreads, JobQueue, Models, Processes, TurnStreams
from app.usecases.segments.detailing import DetailService
from app.usecases.segments.expansion import ExpansionService
from app.usecases.shared.background import Background
from app.usecases.shared.outbox import Outbox
from app.usecases.shared.resolve import Resolver, weighing
from app.usecases.shared.shell import Shell
from app.usecases.shared.work_records import WorkRecords
from app.usecases.ui.threads import ThreadService
from app.usecases.ui.turns import FrontendTurnService
from app.usecases.verification.examining import ExaminationService
from app.usecases.verification.listing import VerificationListing
from app.usecases.verification.run import VerificationService


async def _no_complaint() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The adapters on which the services are built; tests bring their own."""

    uow: UnitOfWorkFactory
    bus: EventBus
    queue: JobQueue
    models: Models
    clock: Clock
    streams: TurnStreams
    counters: Counters = field(default_factory=LocalCounters)
    processes: Processes = field(default_factory=InThreads)
    database_state: Callable[[], Awaitable[DatabaseState]]
    row_security: Callable[[], Awaitable[bool]]
    """Returns whether the database itself separates tenants."""
    schema_complaint: Callable[[], Awaitable[str | None]] = _no_complaint
    """Returns what has to be done before this code can work with the database's schema."""
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Functions that close connections, in order."""


class Container:
    """Everything that one process needs, built once, on the event loop that uses it.

    Raises ``ToolSettingError`` for a tool that cannot be used.
    """

    def __init__(self, settings: Settings, parts: Parts, owner: str) -> None:
        further, timings = load_tools(settings.tools), settings.timings
        shell = _shell_of(settings, parts, owner, [tool.spec for tool in further])
        unlimited = anonymous_allowed(settings)
        spending = SpendGuard(settings.tenant_calls_per_hour, Limits() if unlimited else settings.tenant_limits)
        background_slots = max(settings.worker_concurrency // 2, 1)
        meter, secret = ProcessMeter(), _secret(settings.sealing_key)
        self.settings, self.parts = settings, parts
        self.outbox, self.work_records = shell.outbox, shell.work_records
        self.shares = WorkShares()  # limits how much each tenant may have computed at once

        self.limits = LimitService(shell, parts.counters, tenant=settings.tenant_limits, key=settings.key_limits)
        self.keys = KeyService(shell, anonymous_allowed=unlimited, failures_per_minute=settings.failed_keys_per_minute)
        self.sessions = SessionService(shell, self.keys, AesSealer(secret, purpose="session"))
        self.audit = AuditService(shell)
        self.stats = StatsService(shell)
        self.measuring = Measuring(shell, meter)
        self.background = Background(parts.clock, meter)  # work that runs as long as the process

        self.conversations = ConversationService(shell)
        self.states = StateService(shell, self.conversations)
        self.messages = MessageService(shell)
        self.pins = PinService(shell)
        self.anchors = AnchorService(shell)
        self.erasure = ErasureService(shell)
        self.removal = RemovalService(shell)
        self.release = ReleaseService(shell, self.conversations)
        self.export = ExportService(shell, self.conversations)
        self.feed = EventFeed(parts.uow, parts.bus, parts.clock, timings)
        self.copies = ProviderCopyService(shell)
        self.files = FileService(shell, files_bytes=settings.max_files_bytes)
        self.file_copies = FileCopyService(shell)

        self.compaction = CompactionService(shell, spending)
        self.manual = ManualCompaction(shell, self.compaction, spending)
        self.detailing = DetailService(shell, spending, slots=background_slots)
        self.embedding = EmbeddingService(shell, spending)
        self.verification = VerificationService(shell, spending, slots=background_slots, model=settings.verifier_model)
        self.verifications, self.examination = VerificationListing(shell), ExaminationService(shell)

        serving = FileServing(shell, self.file_copies)
        self.caches = CacheService(shell, spending, serving)
        self.context = ContextService(shell, serving, SimilarityService(shell, spending))
        self.context_requests = ContextRequests(
            shell, self.context, InlineCompaction(shell, self.compaction, ran_in="request")
        )
        self.search = SearchService(shell)
        self.expansion = ExpansionService(shell, self.detailing, spending)

        inline = InlineCompaction(shell, self.compaction)
        lookups = Lookups(shell, expansion=self.expansion, search=self.search)
        runner = TurnRunner(
            shell,
            inline=inline,
            commands=CommandRunner(self.manual),
            loop=ToolLoop(
                shell, context=self.context, inline=inline, toolbox=Toolbox(shell, lookups=lookups, further=further)
            ),
        )
        self.chat = ChatService(shell, inline, runner, self.limits)
        # Services for frontends of the AI SDK.
        self.ui_turns = FrontendTurnService(shell, self.chat)
        self.ui_threads = ThreadService(shell)

        # Services for clients of OpenAI's API; the worker uses them to copy the beginnings of forks.
        self.forks = ForkService(shell, parts.queue)
        self.openai = OpenAIServices(
            stateless=StatelessAnswers(shell, self.limits),
            stored=StoredAnswers(
                shell,
                chat=self.chat,
                conversations=self.conversations,
                messages=self.messages,
                forks=self.forks,
            ),
            responses=StoredResponses(shell, chat=self.chat, erasure=self.erasure),
            compaction=ArrayCompaction(shell, spending, self.limits),
            sealed=SealedInputs(shell, AesSealer(secret)),
            new_id=shell.new_id,
        )

        self.sweeper = Sweeper(
            parts.uow,
            parts.queue,
            self.compaction,
            parts.bus,
            parts.clock,
            owner,
            random.Random(),
            self.detailing,
            self.verification,
            self.embedding,
            lambda: one.name if (one := embedder_of(shell)) else None,
            timings=timings,
            chores=(self.removal, self.caches, self.copies, self.file_copies),
            housekeeping=RetentionService(parts.uow, settings.retention),
        )

    async def drain(self) -> None:
        """Wait at most some seconds for the work that a job left behind: sending events, and ending its record."""
        await self.outbox.drain()
        await self.work_records.drain()

    async def close(self) -> None:
        """Let running turns finish, then close every connection."""
        await self.chat.close(self.settings.timings.shutdown_seconds)
        await self.drain()
        await self.keys.drain()
        await self.limits.close()
        for close in self.parts.closing:
            await close()


def import_models(settings: Settings) -> None:
    """Import what the models of the settings need.

    It takes a second or more, which would stop heartbeats in a running loop.
    """
    if settings.allowed_models != {OFFLINE} or settings.embedding_model:
        import app.providers.built_models  # noqa: F401, PLC0415 - a process that runs offline needs none of it


async def build_container(settings: Settings, owner: str | None = None, *, processes: bool = False) -> Container:
    """Build the container of this process.

    Args:
        settings: The settings of the process.
        owner: The name under which it holds leases; ``None`` = made from host and process id.
        processes: Whether texts are read in other processes, which is useful if many requests share the loop.

    Raises:
        DependencyUnavailableError: ``DATABASE_URL`` or ``REDIS_URL`` is not set.
    """
    parts = _parts(settings)
    if processes and settings.work_processes:
        pool = ProcessPool(settings.work_processes, settings.work_seconds)
        await pool.start()
        parts = replace(parts, processes=pool, closing=(pool.close, *parts.closing))
    return Container(settings, parts, owner or owner_name("process"))


def _shell_of(settings: Settings, parts: Parts, owner: str, tools: Sequence[ToolSpec]) -> Shell:
    """What every service works with, made from these parts."""
    timings = settings.timings
    resolver = Resolver(parts.models, tools, settings.operator_numbers, settings.default_preset)
    outbox = Outbox(bus=parts.bus, queue=parts.queue, uow=parts.uow)
    return Shell(
        uow=outbox.delivering(weighing(parts.uow, resolver)),
        models=parts.models,
        bus=parts.bus,
        clock=parts.clock,
        new_id=new_id,
        owner=owner,
        resolver=resolver,
        outbox=outbox,
        work_records=WorkRecords(parts.uow, parts.clock, new_id, uuid4(), timings),
        streams=parts.streams,
        processes=parts.processes,
        timings=timings,
        versions_kept=settings.state_versions_kept,
        verifies=settings.verify != "off",
        verify_wait=timedelta(seconds=settings.verify_wait_seconds),
        caches=settings.provider_caches != "off",
        media_bytes=settings.max_media_bytes,
    )


def anonymous_allowed(settings: Settings) -> bool:
    """Whether requests need no key: only in embedded development mode, on loopback, unless the settings forbid it."""
    if settings.auth_required is not None:
        return not settings.auth_required and is_loopback(settings.host)
    return settings.embedded and is_loopback(settings.host)


def is_open(settings: Settings, *, opened: bool | None) -> bool:
    """Whether a page without a key is answered: as the operator set it, otherwise only on loopback."""
    return is_loopback(settings.host) if opened is None else opened


def is_loopback(host: str) -> bool:
    """Whether a host is a name or an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parts(settings: Settings) -> Parts:
    engine = make_engine(_required(settings.database_url, "DATABASE_URL"))
    redis_url = _required(settings.redis_url, "REDIS_URL")
    timings, models = settings.timings, make_models(settings)
    bus = RedisEventBus(redis_url, pause_seconds=timings.broker_pause_seconds)
    streams = RedisTurnStreams(redis_url, pause_seconds=timings.broker_pause_seconds)
    queue = CeleryJobQueue(redis_url, pause_seconds=timings.broker_pause_seconds)
    counters = RedisCounters(redis_url, pause_seconds=timings.broker_pause_seconds)
    return Parts(
        uow=unit_of_work_factory(engine, timings, ConnectionShares(TENANT_CONNECTIONS)),
        bus=bus,
        queue=queue,
        models=models,
        clock=SystemClock(),
        streams=streams,
        counters=counters,
        database_state=partial(ping, engine),
        row_security=partial(row_security, engine),
        schema_complaint=partial(schema_complaint, engine),
        closing=(queue.close, bus.close, streams.close, counters.close, models.close, engine.dispose),
    )


def make_models(settings: Settings) -> ModelRegistry:
    """The models of the settings. A model is built when it is first needed."""
    return ModelRegistry(
        chat=settings.resolved_chat_model,
        compaction=settings.resolved_compaction_model,
        keys=Keys(
            google_api_key=_secret(settings.google_api_key),
            google_base_url=settings.google_base_url,
            openai_api_key=_secret(settings.openai_api_key),
            openai_base_url=settings.openai_base_url,
            ambient=settings.ambient_credentials,
        ),
        allowed=settings.allowed_models,
        input_limit=settings.model_input_limit,
        chat_timeout=settings.chat_timeout_seconds,
        compaction_timeout=settings.compaction_timeout_seconds,
        embedding=settings.embedding_model,
        embedding_dimensions=settings.embedding_dimensions,
        question_timeout=settings.embedding_question_seconds,
        failures_to_open=settings.model_failures_to_open,
        circuit_pause=settings.model_pause_seconds,
    )


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value else None


def _required(value: str | None, name: str) -> str:
    if not value:
        raise DependencyUnavailableError(f"{name} is not set: set it, or start with `make run`, which brings its own")
    return value
