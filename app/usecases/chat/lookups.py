"""The results of the chat model's tools ``expand_context`` and ``search_history``.

All quoted text is bounded and marked as data. A mistake of the model is described in the result, never raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.context.tools import (
    DEFAULT_HITS,
    EXPAND_TOOL,
    MAX_HITS,
    QuotedLine,
    echoed_words,
    level_named,
    lines_within,
    message_label,
    quote_element,
    tokens_for_quotes,
)
from app.core.model.conversation import Message
from app.core.model.errors import NotFoundError
from app.core.model.records import Turn
from app.core.model.segments import LEVEL_BY_NAME, Expansion, LevelName
from app.core.model.word_overlap import message_text
from app.core.segments.markers import parse_marker
from app.core.text.escaping import clean
from app.core.text.localization.catalogue import FALLBACK, Catalogue, catalogue_of
from app.core.text.speakers import name_in
from app.core.text.token_counts import estimate_text
from app.usecases.context.search import PageStart, SearchHit, SearchService
from app.usecases.segments.expansion import Expanded, ExpansionService
from app.usecases.shared.shell import Shell

MAX_QUERY_LENGTH: Final = 1_000  # characters, as in GET …/search
MAX_CURSOR_LENGTH: Final = 400
_SMALLER: Final = (1, 2, 4, 8)  # the page gets one part in so many of the room, ever smaller until it fits


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The text that the model gets as the result, and what belongs to it."""

    text: str
    quotes: tuple[tuple[int, int], ...] = ()
    """The first and last ``seq`` of each quoted range, quoted verbatim or shortened."""
    expansions: tuple[Expansion, ...] = ()
    """The expansions to be recorded with the result."""
    content_epoch: int | None = None
    """The conversation's content epoch before the look-up."""

    def at(self, content_epoch: int, locale: str = FALLBACK) -> ToolResult:
        """The result as it may be stored now: without quotations if something was erased since the look-up."""
        if not self.quotes or self.content_epoch in (None, content_epoch):
            return self
        return ToolResult(text=catalogue_of(locale).text("tools.changed"))


class Lookups:
    """Looks up for the chat model of a turn."""

    def __init__(self, shell: Shell, *, expansion: ExpansionService, search: SearchService) -> None:
        self._shell = shell
        self._expansion = expansion
        self._search = search

    async def expand(
        self, turn: Turn, arguments: Mapping[str, object], most: int, locale: str = FALLBACK
    ) -> ToolResult:
        """A page of the messages behind a marker; the service's own words are in the language of ``locale``."""
        catalogue = catalogue_of(locale)
        named = str(arguments.get("marker") or "")
        marker, level = parse_marker(named), level_named(arguments.get("level"))
        if marker is None:
            return ToolResult(text=catalogue.text("tools.unknown", segment=echoed_words(named)))
        if level is None:
            given = echoed_words(arguments.get("level"))
            return ToolResult(text=catalogue.text("tools.no_level", level=given, levels=", ".join(LEVEL_BY_NAME)))
        after = clean(str(arguments.get("after") or ""))[:MAX_CURSOR_LENGTH] or None
        try:
            page, lines = await self._page(turn, marker.segment_id, level, after, tokens_for_quotes(most), catalogue)
        except NotFoundError:
            return ToolResult(text=catalogue.text("tools.unknown", segment=echoed_words(marker.segment_id)))
        what = f"{page.segment_id}, {page.level}"
        text = (
            quote_element(what, lines, note=_note_on_more(page, catalogue)) if lines else catalogue.text("tools.empty")
        )
        expansions = (page.expansion,) if page.expansion else ()
        return ToolResult(text=text, quotes=_quoted_ranges(page), expansions=expansions)

    async def _page(
        self, turn: Turn, segment_id: str, level: LevelName, after: str | None, max_tokens: int, catalogue: Catalogue
    ) -> tuple[Expanded, Sequence[QuotedLine]]:
        """The largest page that fits with the labels of its lines.

        If a single line is too long, its beginning is returned.
        """
        for part in _SMALLER:
            page = await self._expansion.expand(
                turn.tenant_id,
                turn.conversation_id,
                segment_id,
                level,
                max_tokens=max(max_tokens // part, 1),
                after=after,
                records=False,
            )
            lines = _lines_of(page, catalogue)
            fitting = lines_within(lines, max_tokens, catalogue)
            if len(fitting) == len(lines) or len(page.messages) == 1:
                break
        return page, fitting

    async def search(
        self, turn: Turn, message: Message, arguments: Mapping[str, object], most: int, locale: str = FALLBACK
    ) -> ToolResult:
        """Earlier messages that match, without those of the turn that ``message`` began."""
        catalogue = catalogue_of(locale)
        began, query = self._shell.clock.monotonic(), clean(str(arguments.get("query") or ""))[:MAX_QUERY_LENGTH]
        if not query.strip():
            return ToolResult(text=catalogue.text("tools.no_words"))
        page = await self._search.find(
            turn.tenant_id,
            turn.conversation_id,
            query,
            limit=_number_of_hits(arguments.get("limit")),
            place=PageStart(message.seq - 1, 0),
        )
        shown = lines_within([_line_of(hit, catalogue) for hit in page.hits], tokens_for_quotes(most), catalogue)
        hits = page.hits[: len(shown)]
        text = quote_element(catalogue.text("tools.searched"), shown) if shown else catalogue.text("tools.not_found")
        expansion = Expansion(
            id=self._shell.new_id(),
            conversation_id=turn.conversation_id,
            way="search",
            passages=len(hits),
            tokens=estimate_text(text),
            duration_ms=round((self._shell.clock.monotonic() - began) * 1_000),
            created_at=self._shell.clock.now(),
        )
        return ToolResult(text=text, quotes=tuple((hit.seq, hit.seq) for hit in hits), expansions=(expansion,))


def _lines_of(page: Expanded, catalogue: Catalogue) -> list[QuotedLine]:
    if page.messages:
        shown = [message for message in page.messages if message.status not in {"erased", "superseded"}]
        return [
            QuotedLine(text=message_text(one), label=_label_of(one, name_in(one.metadata), catalogue)) for one in shown
        ]
    if page.segment is None:
        return [QuotedLine(text=line) for line in page.content.splitlines()]
    return [QuotedLine(text=page.content, label=page.segment_id)] if page.content.strip() else []


def _quoted_ranges(page: Expanded) -> tuple[tuple[int, int], ...]:
    if page.messages:
        return ((page.messages[0].seq, page.messages[-1].seq),)
    if page.segment is not None:
        return ((page.segment.from_seq, page.segment.to_seq),)
    listed = [(segment.from_seq, segment.to_seq) for segment in page.segments]
    return (*listed, *((anchor.seq, anchor.seq) for anchor in page.anchors))


def _note_on_more(page: Expanded, catalogue: Catalogue) -> str:
    return catalogue.text("tools.more", tool=EXPAND_TOOL.name, after=page.next_cursor) if page.next_cursor else ""


def _line_of(hit: SearchHit, catalogue: Catalogue) -> QuotedLine:
    return QuotedLine(text=hit.snippet, label=_label_of(hit, hit.said_by, catalogue))


def _label_of(one: Message | SearchHit, said_by: str, catalogue: Catalogue) -> str:
    return message_label(one.seq, one.role, one.created_at, catalogue, said_by=said_by)


def _number_of_hits(given: object) -> int:
    try:
        return min(max(int(str(given)), 1), MAX_HITS)
    except ValueError:
        return DEFAULT_HITS
