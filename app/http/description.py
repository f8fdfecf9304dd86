"""The OpenAPI document: made by the framework, with this service's problems instead of its validation errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute, Route

from app.http.errors import MEDIA_TYPE, Problem, ProblemField
from app.http.event_schemas import UNIONS
from app.http.openai.errors import is_openai_path
from app.http.reference import POLICY, page
from app.http.schemas import Event, Notification
from app.off_loop import off_loop

PAGE: Final = "/docs"
TITLE: Final = "Throughline"
TEXT: Final = "Conversations that outgrow a model's context window, kept whole."
SCHEMA_REF: Final = "#/components/schemas/{model}"
UNREFERENCED_MODELS: Final = (Problem, ProblemField, Event, Notification)
"""Models that the framework does not see: problems, and the data of streams."""
REPLACED_SCHEMAS: Final = ("HTTPValidationError", "ValidationError")
PROBLEM_RESPONSE: Final = {
    "description": "An RFC 9457 problem; `code` is stable.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": SCHEMA_REF.format(model="Problem")}}},
}


def install(app: FastAPI) -> None:
    """Serve this document, and the page that shows it, for the present routes in their order."""
    routes = list(app.routes)

    def document() -> dict[str, Any]:
        app.openapi_schema = app.openapi_schema or describe(app, routes)
        return app.openapi_schema

    async def serve(_request: Request) -> Response:
        return Response(await off_loop(written), media_type="application/json")

    @cache
    def written() -> bytes:
        return json.dumps(document(), ensure_ascii=False).encode()

    async def show(_request: Request) -> Response:
        return HTMLResponse(await off_loop(shown), headers={"Content-Security-Policy": POLICY})

    @cache
    def shown() -> bytes:
        return page(document())

    app.openapi = document  # type: ignore[method-assign]  # the framework's documented way
    if app.openapi_url is not None:  # before the framework's own route, which makes the document on the loop
        app.router.routes.insert(0, Route(app.openapi_url, serve, include_in_schema=False))
        app.router.routes.insert(0, Route(PAGE, show, include_in_schema=False))


def describe(app: FastAPI, routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """The document; it is the same in every process."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=routes)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if not is_openai_path(path):
                operation["responses"]["default"] = PROBLEM_RESPONSE
    models = document["components"]["schemas"]
    for name in REPLACED_SCHEMAS:
        models.pop(name, None)
    for model in UNREFERENCED_MODELS:
        schema = model.model_json_schema(ref_template=SCHEMA_REF, mode="serialization")
        schema.pop("$defs", None)
        models[model.__name__] = schema
    for name, union in UNIONS.items():
        schema = union.json_schema(ref_template=SCHEMA_REF, mode="serialization")
        models.update({model: found for model, found in schema.pop("$defs").items() if model not in models})
        models[name] = schema
    document["components"]["schemas"] = dict(sorted(models.items()))
    return document
