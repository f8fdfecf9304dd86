"""The chat model's tools: when they are offered, what their results say, and how large these are.

Tools are part of a request's stable beginning, so whether they are offered depends on the policy and on how much is out
of sight, never on the question. A short chat pays for no tools, and from the first larger compaction on the tools stay
the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.core.anchors.rendering import escape_served
from app.core.model.model_io import ToolSpec
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.segments import LEVEL_BY_NAME, LevelName
from app.core.retrieval.rendering import RECALLED_TAG
from app.core.text.budget import first_fitting
from app.core.text.escaping import clean
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, Catalogue, catalogue_of
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.token_counts import Estimator, estimate_text

MIN_HIDDEN_TOKENS: Final = 1_000
"""Tools are offered from so many tokens out of sight on: with fewer, their definitions would cost about as much."""

MAX_CALLS: Final = 8
"""The most calls in one turn; when they are used up, the model is asked once more, without tools."""

RESULT_TOKENS: Final = 2_000
RESULT_SHARE: Final = 10
"""The most tokens of a result (``RESULT_TOKENS``), and the divisor of the budget that limits it further: a tenth."""
RESULTS_SHARE: Final = 4
"""Tenths of the budget for the results of calls made at once, which cannot be separated from their call."""

MAX_HITS: Final = 10
DEFAULT_HITS: Final = 5
"""The most hits of one search, and the number if the model gives none."""

_MAX_ECHOED_CHARACTERS: Final = 48  # the most characters of a model's own words that are repeated to it
_TOKEN_CHARACTERS: Final = 8  # no script has longer tokens on average: a longer text is cut before tokens are counted
_QUOTE, _APOSTROPHE = "\"'"
_FRAME: Final = 60  # tokens of the element around what is quoted, and of the note after it, rounded up


def _expand_tool(catalogue: Catalogue) -> ToolSpec:
    return ToolSpec(
        name="expand_context",
        description=catalogue.text("tools.expand"),
        parameters={
            "type": "object",
            "properties": {
                "marker": {"type": "string", "description": catalogue.text("tools.expand_marker")},
                "level": {
                    "type": "string",
                    "enum": list(LEVEL_BY_NAME),
                    "description": catalogue.text("tools.expand_level"),
                },
                "after": {"type": "string", "description": catalogue.text("tools.expand_after")},
            },
            "required": ["marker", "level"],
        },
    )


def _search_tool(catalogue: Catalogue) -> ToolSpec:
    return ToolSpec(
        name="search_history",
        description=catalogue.text("tools.search"),
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS},
            },
            "required": ["query"],
        },
    )


_OFFERED: Final = {name: (_search_tool(catalogue), _expand_tool(catalogue)) for name, catalogue in CATALOGUES.items()}
"""The tools by language, made only once, since a request has to begin with the same bytes each time."""
SEARCH_TOOL, EXPAND_TOOL = _OFFERED[FALLBACK]
OWN_TOOL_NAMES: Final = frozenset({EXPAND_TOOL.name, SEARCH_TOOL.name})
ANSWER_TOOL_NAME: Final = "structured_answer"
"""The name of the tool by which some models give a structured answer. No other tool may have it.

So it is no name that agent frameworks use for tools of their own, which come with every request.
"""

_LEVELS: Final[Mapping[str, LevelName]] = {
    **{name: name for name in LEVEL_BY_NAME},
    **{str(level or "L0").lower(): name for name, level in LEVEL_BY_NAME.items()},
}


def offered_tools(
    policy: CompactionPolicy,
    *,
    hidden_tokens: int,
    overflows: bool,
    operator_tools: Sequence[ToolSpec],
    locale: str = FALLBACK,
) -> tuple[ToolSpec, ...]:
    """The tools of a conversation's requests, in a fixed order.

    Args:
        policy: The policy. Without levels there are no markers to expand.
        hidden_tokens: The tokens that a state covers, without held messages.
        overflows: Whether the whole context exceeds the budget.
        operator_tools: The operator's tools, which are always offered, before ours.
        locale: The conversation's locale, for the language of our descriptions.
    """
    search, expand = _OFFERED[catalogue_of(locale).language]
    is_worthwhile = hidden_tokens >= MIN_HIDDEN_TOKENS
    finds = (search,) if is_worthwhile or overflows else ()
    expands = (expand,) if is_worthwhile and policy.levels else ()
    return (*operator_tools, *finds, *expands)


def tools_after_compaction(
    policy: CompactionPolicy, operator_tools: Sequence[ToolSpec], locale: str = FALLBACK
) -> tuple[ToolSpec, ...]:
    """The tools that are offered once the conversation has been compacted."""
    return offered_tools(
        policy, hidden_tokens=MIN_HIDDEN_TOKENS, overflows=True, operator_tools=operator_tools, locale=locale
    )


def tools_tokens(tools: Sequence[ToolSpec], estimator: Estimator) -> int:
    """The tokens that the definitions of tools add to every request."""
    return sum(_weight(_rendered_tool(tool), estimator) for tool in tools)


def result_tokens(budgets: Budgets, calls: int = 1) -> int:
    """The most tokens of each result if the model made this many ``calls`` at once."""
    return min(RESULT_TOKENS, budgets.budget // RESULT_SHARE, RESULTS_SHARE * budgets.budget // (10 * calls))


def tokens_for_quotes(max_tokens: int) -> int:
    """The tokens for quoted text in a result of at most ``max_tokens`` tokens; its frame needs the rest."""
    return max(max_tokens - _FRAME, 1)


def level_named(name: object) -> LevelName | None:
    """A level, given by its published name or as ``L0`` to ``L3``; the originals if none is given."""
    if name is None or name == "":
        return "full"
    return _LEVELS.get(str(name).strip().lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedLine:
    """A quoted message, or a text that stands for several."""

    text: str
    label: str = ""
    """Its label in the conversation's language: ``#12 user 2026-01-02``. A line without one is fenced already."""


def message_label(
    seq: int, role: str, at: datetime, catalogue: Catalogue = CATALOGUES[FALLBACK], *, said_by: str = ""
) -> str:
    """The label of a quoted message, also as an attribute. The speaker's name in the message follows the role."""
    by = f" ({escape_served(said_by).replace(_QUOTE, _APOSTROPHE)})" if said_by else ""
    return f"#{seq} {catalogue.word('context.role', role)}{by} {at:%Y-%m-%d}"


def quote_element(what: str, lines: Sequence[QuotedLine], *, note: str = "") -> str:
    """Quoted lines fenced as data: one line per message, or an element of its own for a text with line breaks."""
    element = [f'<{RECALLED_TAG} of="{escape_served(what)}">', *map(_rendered_line, lines), f"</{RECALLED_TAG}>"]
    return "\n".join([*element, note] if note else element)


def lines_within(
    lines: Sequence[QuotedLine], max_tokens: int, catalogue: Catalogue = CATALOGUES[FALLBACK]
) -> list[QuotedLine]:
    """The first of these lines, as many as fit into ``max_tokens``; the first is cut if it does not fit alone."""
    fitting = first_fitting(lines, max_tokens, lambda line: estimate_text(_rendered_line(line)) + 1)
    if fitting or not lines:
        return fitting
    return [
        QuotedLine(
            text=shortened_text(lines[0].text, max(max_tokens - estimate_text(lines[0].label), 1), catalogue),
            label=lines[0].label,
        )
    ]


def shortened_text(text: str, max_tokens: int, catalogue: Catalogue = CATALOGUES[FALLBACK]) -> str:
    """A text cut to ``max_tokens`` tokens, with a note on how much is missing."""
    text = clean(text)
    kept = text[: max_tokens * _TOKEN_CHARACTERS]
    if len(kept) == len(text) and estimate_text(text) <= max_tokens:
        return text
    note = f" {catalogue.text('context.cut', count=str(len(text)))}"
    while (size := estimate_text(f"{kept}{note}")) > max_tokens and kept:
        kept = kept[: min(len(kept) * max_tokens // size, len(kept) - 1)]
    return f"{kept}{note}"


def echoed_words(text: object) -> str:
    """A model's own words, shortened and escaped, to tell it what was wrong with them."""
    line = " ".join(clean(str(text)).split())
    return escape_served(line if len(line) <= _MAX_ECHOED_CHARACTERS else f"{line[:_MAX_ECHOED_CHARACTERS]}…")


def _rendered_line(line: QuotedLine) -> str:
    if not line.label:
        return line.text
    text = escape_served(clean(line.text))
    if len(text.splitlines()) <= 1:
        return f"{line.label}: {text}"
    return f'<message of="{line.label}">\n{text}\n</message>'


def _rendered_tool(tool: ToolSpec) -> str:
    shown = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@memoized(FIGURE_GROWTH)
def _weight(rendered: str, estimator: Estimator) -> int:
    return estimate_text(rendered, estimator)
