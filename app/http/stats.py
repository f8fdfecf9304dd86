"""The routes of statistics of a conversation and of a whole tenant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Header, Query, Response
from pydantic import BeforeValidator

from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.http.dependencies import Services, Tenant
from app.http.fields import refuse_number_as_time
from app.http.refusals import invalid_field
from app.http.routing import keyed_router
from app.http.stats_present import present_conversation_stats, present_service_stats
from app.http.stats_schemas import ConversationStats, ServiceStats

router = keyed_router("", "stats")

AcceptLanguage = Annotated[
    str | None, Header(alias="Accept-Language", description="The language of labels; else the conversation's `locale`.")
]
Since = Annotated[
    datetime | None,
    BeforeValidator(refuse_number_as_time),
    Query(description="Only what ended from then on, and what is under way; without an offset: UTC."),
]


@router.get("/conversations/{conversation_id}/stats")
async def get_conversation_stats(
    conversation_id: UUID,
    response: Response,
    services: Services,
    tenant: Tenant,
    accept_language: AcceptLanguage = None,
) -> ConversationStats:
    """The statistics of a conversation, with labels."""
    measures = await services.stats.conversation(tenant, conversation_id)
    catalogue = catalogue_of(accept_language, measures.resolved.conversation.locale)
    return present_conversation_stats(measures, _with_language_headers(response, catalogue))


@router.get("/stats")
async def get_stats(
    response: Response,
    services: Services,
    tenant: Tenant,
    since: Since = None,
    accept_language: AcceptLanguage = None,
) -> ServiceStats:
    """The statistics of all conversations, with labels."""
    catalogue = _with_language_headers(response, catalogue_of(accept_language))
    return present_service_stats(await services.stats.service(tenant, _in_utc(since)), catalogue)


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is None:
        return moment and moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise invalid_field("since", "must be a moment of the years 1 to 9999") from None


def _with_language_headers(response: Response, catalogue: Catalogue) -> Catalogue:
    response.headers["Content-Language"] = catalogue.language
    response.headers["Vary"] = "Accept-Language"
    return catalogue
