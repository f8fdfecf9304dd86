"""What is stored of folded messages contains none of their secrets, whatever form they have there."""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model import redaction
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction
from app.core.text.plain_view import PlainView
from app.providers.offline import OfflineSummarizer
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from tests.integration.rows import make_tenant
from tests.integration.services import Service

PATIENCE: Final = 30.0
SAID: Final[tuple[tuple[Literal["user", "assistant"], str], ...]] = (
    ("user", "We need the password for the ferry terminal in Oban: what is it?\nWhat's the wifi password?"),
    ("assistant", "Kettle_4821"),
    ("user", "Please remember that the admin p\u0430ssword is Lantern_7713, we decided to keep it until June 3."),
    ("user", "The deploy password:\n\n    Walnut_9924\n\nand the booking is for June 12 in Oban."),
    ("user", 'We decided on this: {"password": "Cob\\"alt_5561", "host": "oban.example.org"} for the terminal.'),
)
SECRETS: Final = ("Kettle_4821", "Lantern_7713", "Walnut_9924", "alt_5561")
DERIVED: Final = ("state_versions", "anchors", "segments", "segment_levels", "compactions", "conversations", "events")


async def offline(request: SummaryRequest) -> Proposal:
    return await OfflineSummarizer().ask(request)


async def folded(begin: UnitOfWorkFactory, tenant: UUID) -> Compaction:
    service = Service(begin, tenant, offline)
    conversation_id = await service.conversation(max_tokens=-1)
    for role, content in SAID:
        draft = MessageDraft(role=role, content=content)
        await service.container.messages.append(tenant, conversation_id, [draft])
    await service.say(conversation_id, 12)
    asked = CompactInput(keep_tail_messages=2, focus="the t\u043eken: a1b2c3d4e5f6g7h8")
    view = await service.container.manual.compact(tenant, conversation_id, asked, timeout=PATIENCE)
    await service.container.outbox.drain()
    return view.compaction


async def told(engine: AsyncEngine, *tables: str) -> str:
    async with engine.connect() as connection:
        rows = [
            await connection.execute(text(f"SELECT t::text FROM {table} AS t"))  # noqa: S608 - our own
            for table in tables
        ]
        return "\n".join(row for found in rows for (row,) in found.all())


@pytest.mark.case("61")
async def test_nothing_that_is_made_of_messages_has_their_secrets(
    begin: UnitOfWorkFactory, engine: AsyncEngine
) -> None:
    compaction = await folded(begin, await make_tenant(begin, "default"))
    assert compaction.status == "applied"
    derived = await told(engine, *DERIVED)
    assert [secret for secret in (*SECRETS, "a1b2c3d4e5f6g7h8") if secret in derived] == []
    assert "[REDACTED:password]" in derived
    originals = await told(engine, "messages")
    assert [secret for secret in SECRETS if secret not in originals] == []


@pytest.mark.long
@pytest.mark.control("61")
async def test_control_what_is_not_looked_for_is_stored(
    begin: UnitOfWorkFactory, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "plain_view", PlainView)
    monkeypatch.setattr(redaction, "secret_in_answer", lambda before, after: None)
    await folded(begin, await make_tenant(begin, "default"))
    derived = await told(engine, *DERIVED)
    assert {"Kettle_4821", "Lantern_7713"} <= {secret for secret in SECRETS if secret in derived}
