"""``/ui``: serves the files of the page. They contain no user data, so they need no login."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.core.model.errors import NotFoundError
from app.http.browser.archive import PageFile, page_files

MISSING_PAGE: Final = "404.html"
CACHE_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

router = APIRouter(include_in_schema=False)


@router.get("/")
def root() -> Response:
    """Redirect the bare address of the service to the page."""
    return RedirectResponse("/ui/", status_code=307)


@router.get("/ui")
def to_page(request: Request) -> Response:
    """Redirect to the page's own address, which ends with a slash."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/ui/{query}", status_code=308)


@router.get("/ui/{path:path}")
def page(path: str, request: Request) -> Response:
    """A file of the page.

    Raises:
        NotFoundError: The page was not built.
    """
    found = page_files()
    if not found:
        raise NotFoundError("The page is not part of this installation: `make ui` builds it.")
    file = found.get(path) or found.get(f"{path}index.html" if path.endswith("/") or not path else f"{path}/index.html")
    return _response(file or found[MISSING_PAGE], request, status=200 if file else 404)


def _response(file: PageFile, request: Request, status: int) -> Response:
    headers = {**SECURITY_HEADERS, "ETag": file.etag, "Vary": "Accept-Encoding"}
    headers["Cache-Control"] = CACHE_FOR_A_YEAR if file.is_immutable else "no-cache"
    if file.policy:
        headers |= {"Content-Security-Policy": file.policy, "X-Frame-Options": "DENY"}
    if status == 200 and request.headers.get("if-none-match") == file.etag:  # noqa: PLR2004
        return Response(status_code=304, headers=headers)
    content = file.content
    if file.gzipped is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = file.gzipped, "gzip"
    return Response(content, status, headers, file.media_type)
