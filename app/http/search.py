"""Search over the original messages of a conversation."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from fastapi import Query
from pydantic import Field, TypeAdapter

from app.core.model.conversation import Role
from app.http import schemas
from app.http.dependencies import After, Limit, Services, Tenant
from app.http.routing import keyed_router
from app.storage.repositories.cursor import Number, decode, encode
from app.usecases.context.search import PageStart

MAX_QUERY_LENGTH: Final = 1_000
CURSOR_KEY: Final = TypeAdapter(tuple[Number, Number, Number])

router = keyed_router("/conversations/{conversation_id}/search", "messages")


class SearchHit(schemas.Output):
    """A message that matches a query."""

    message_id: UUID
    seq: int
    segment_id: str | None = Field(default=None, description="The segment that it is folded into.")
    snippet: str = Field(description="A passage of the original, as it stands there.")
    score: float = Field(description="0 to 1, beside other hits of the same query.")
    role: Role
    created_at: schemas.Moment


@router.get("")
async def search_messages(
    conversation_id: UUID,
    services: Services,
    tenant: Tenant,
    q: Annotated[
        str, Query(max_length=MAX_QUERY_LENGTH, description="Words; a phrase in quotes is found as it stands.")
    ],
    limit: Limit = 20,
    after: After = None,
) -> schemas.Listing[SearchHit]:
    """The original messages that match, best first, including compacted ones but no erased ones.

    A query without a word (signs, an emoji), or with words that are found nowhere, is searched for literally in the
    newest 20 000 messages.
    """
    place = None if after is None else PageStart(*decode(after, CURSOR_KEY))
    page = await services.search.find(tenant, conversation_id, q, limit=limit, place=place)
    following = page.following and encode((page.following.through_seq, page.following.skip, page.following.last_seq))
    hits = [SearchHit.model_validate(hit) for hit in page.hits]
    return schemas.Listing(data=hits, next_cursor=following, has_more=following is not None)
