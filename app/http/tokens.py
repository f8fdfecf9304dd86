"""The route that counts the tokens of a text or of messages."""

from __future__ import annotations

from app.http import schemas
from app.http.dependencies import IdempotencyKey, Services, Tenant
from app.http.requests import TokenCountRequest, drafts_of
from app.http.routing import keyed_router

router = keyed_router("/tokens", "tokens")


@router.post("/count")
async def count_tokens(
    body: TokenCountRequest, services: Services, _tenant: Tenant, _idem: IdempotencyKey
) -> schemas.TokenCount:
    """Count tokens with the estimator that is used for messages; nothing is stored."""
    drafts = None if body.messages is None else await drafts_of(body.messages)
    return schemas.TokenCount(tokens=await services.context.count_tokens(body.text, drafts))
