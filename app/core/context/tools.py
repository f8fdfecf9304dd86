"""The chat model's tools: which are offered when, what their results say, and how much of it.

Tools are part of a request's stable beginning, so what is offered depends on the policy and on how much is out of
sight, never on the question: a short chat pays for none, and from the first compaction of some size on the offer stays
as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.core.anchors.rendering import escape_served
from app.core.model.model_io import ToolSpec
from app.core.model.policies.policy import Budgets, CompactionPolicy
from app.core.model.segments import LEVEL_OF, LevelName
from app.core.retrieval.serving import RECALLED_TAG
from app.core.text.budget import first_fitting
from app.core.text.escaping import clean
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, Catalogue, catalogue_of
from app.core.text.memo import FIGURE, memoized
from app.core.text.token_counts import Estimator, estimate_text

WORTHWHILE: Final = 1_000
"""Tokens out of sight from which tools are offered: less than this is hardly more than what their definitions weigh."""

MOST_CALLS: Final = 8
"""Calls in one turn; when they are used up, the model is asked once more, without tools."""

RESULT_TOKENS: Final = 2_000
RESULT_SHARE: Final = 10
"""A result weighs at most this many tokens, and at most a tenth of the budget."""
RESULTS_SHARE: Final = 4
"""Tenths of the budget for the results of calls made at once: they cannot be parted from their call."""

MOST_HITS: Final = 10
HITS: Final = 5
"""Hits of one search: the most, and where the model does not say."""

_ELLIPSIS: Final = 48  # characters of what a model wrote that are said back to it
_TOKEN_CHARACTERS: Final = 8  # no script has longer tokens on average: more than this is cut before it is weighed
_QUOTE, _APOSTROPHE = "\"'"
_FRAME: Final = 60  # tokens of the element around what is quoted, and of the note after it, rounded up


def _expand_tool(say: Catalogue) -> ToolSpec:
    return ToolSpec(
        name="expand_context",
        description=say.text("tools.expand"),
        parameters={
            "type": "object",
            "properties": {
                "marker": {"type": "string", "description": say.text("tools.expand_marker")},
                "level": {"type": "string", "enum": list(LEVEL_OF), "description": say.text("tools.expand_level")},
                "after": {"type": "string", "description": say.text("tools.expand_after")},
            },
            "required": ["marker", "level"],
        },
    )


def _search_tool(say: Catalogue) -> ToolSpec:
    return ToolSpec(
        name="search_history",
        description=say.text("tools.search"),
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS},
            },
            "required": ["query"],
        },
    )


_OFFERED: Final = {name: (_search_tool(say), _expand_tool(say)) for name, say in CATALOGUES.items()}
"""The tools by language, made once: a request has to begin with the same bytes each time."""
SEARCH, EXPAND = _OFFERED[FALLBACK]
OWN: Final = frozenset({EXPAND.name, SEARCH.name})
ANSWER: Final = "final_answer"
"""The name of the tool by which some models give a structured answer. No other tool may have it."""

_LEVELS: Final[Mapping[str, LevelName]] = {
    **{name: name for name in LEVEL_OF},
    **{str(level or "L0").lower(): name for name, level in LEVEL_OF.items()},
}


def offered(
    policy: CompactionPolicy,
    *,
    hidden_tokens: int,
    overflows: bool,
    further: Sequence[ToolSpec],
    locale: str = FALLBACK,
) -> tuple[ToolSpec, ...]:
    """The tools of a conversation's requests, in a fixed order.

    Args:
        policy: Without levels there are no markers to expand.
        hidden_tokens: What a state covers, held messages apart.
        overflows: Whether the whole is more than the budget.
        further: Those of the operator, which come first and always.
        locale: The conversation's: the language of our descriptions.
    """
    search, expand = _OFFERED[catalogue_of(locale).language]
    is_worthwhile = hidden_tokens >= WORTHWHILE
    finds = (search,) if is_worthwhile or overflows else ()
    expands = (expand,) if is_worthwhile and policy.levels else ()
    return (*further, *finds, *expands)


def most_offered(policy: CompactionPolicy, further: Sequence[ToolSpec], locale: str = FALLBACK) -> tuple[ToolSpec, ...]:
    """What is offered once the conversation has been compacted."""
    return offered(policy, hidden_tokens=WORTHWHILE, overflows=True, further=further, locale=locale)


def tools_tokens(tools: Sequence[ToolSpec], estimator: Estimator) -> int:
    """What their definitions add to every request."""
    return sum(_weight(_rendered_tool(tool), estimator) for tool in tools)


def result_tokens(budgets: Budgets, calls: int = 1) -> int:
    """The most tokens that each result may have if the model made this many ``calls`` at once."""
    return min(RESULT_TOKENS, budgets.budget // RESULT_SHARE, RESULTS_SHARE * budgets.budget // (10 * calls))


def quoted_tokens(most: int) -> int:
    """The tokens for quoted text in a result of at most ``most`` tokens, the rest of which its frame needs."""
    return max(most - _FRAME, 1)


def level_named(name: object) -> LevelName | None:
    """A level by its published name or as ``L0`` to ``L3``; the originals where none is given."""
    if name is None or name == "":
        return "full"
    return _LEVELS.get(str(name).strip().lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A quoted message, or a text that stands for several."""

    text: str
    label: str = ""
    """What it is: ``#12 user 2026-01-02``, in the conversation's language. A line without one is fenced already."""


def label_of(seq: int, role: str, at: datetime, say: Catalogue = CATALOGUES[FALLBACK], *, said_by: str = "") -> str:
    """How a quoted message is named, also in an attribute; behind the role stands whom the message itself names."""
    by = f" ({escape_served(said_by).replace(_QUOTE, _APOSTROPHE)})" if said_by else ""
    return f"#{seq} {say.word('context.role', role)}{by} {at:%Y-%m-%d}"


def quoted(what: str, lines: Sequence[Line], *, note: str = "") -> str:
    """Fenced as data: one line per message, or an element of its own for a text with line breaks."""
    element = [f'<{RECALLED_TAG} of="{escape_served(what)}">', *map(_rendered_line, lines), f"</{RECALLED_TAG}>"]
    return "\n".join([*element, note] if note else element)


def within(lines: Sequence[Line], most: int, say: Catalogue = CATALOGUES[FALLBACK]) -> list[Line]:
    """As many of these texts as fit into ``most`` tokens; the first one is cut if it does not fit alone."""
    fitting = first_fitting(lines, most, lambda line: estimate_text(_rendered_line(line)) + 1)
    if fitting or not lines:
        return fitting
    return [Line(text=cut(lines[0].text, max(most - estimate_text(lines[0].label), 1), say), label=lines[0].label)]


def cut(text: str, most: int, say: Catalogue = CATALOGUES[FALLBACK]) -> str:
    """A text cut to ``most`` tokens, and how much of it is missing."""
    text = clean(text)
    kept = text[: most * _TOKEN_CHARACTERS]
    if len(kept) == len(text) and estimate_text(text) <= most:
        return text
    note = f" {say.text('context.cut', count=str(len(text)))}"
    while (size := estimate_text(f"{kept}{note}")) > most and kept:
        kept = kept[: min(len(kept) * most // size, len(kept) - 1)]
    return f"{kept}{note}"


def said_back(text: object) -> str:
    """What the model wrote, short and harmless, to tell it what was wrong."""
    line = " ".join(clean(str(text)).split())
    return escape_served(line if len(line) <= _ELLIPSIS else f"{line[:_ELLIPSIS]}…")


def _rendered_line(line: Line) -> str:
    if not line.label:
        return line.text
    text = escape_served(clean(line.text))
    if len(text.splitlines()) <= 1:
        return f"{line.label}: {text}"
    return f'<message of="{line.label}">\n{text}\n</message>'


def _rendered_tool(tool: ToolSpec) -> str:
    shown = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@memoized(FIGURE)
def _weight(rendered: str, estimator: Estimator) -> int:
    return estimate_text(rendered, estimator)
