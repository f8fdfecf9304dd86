"""The awareness block: a standing part of the system prompt that tells the chat model what a state block is.

It is there from the first turn on, so that a first compaction does not change the prompt's cached beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from app.domain.segments.values import Level
from app.domain.states.state import StateSchema

AWARENESS_TOKENS: Final = 200
"""The most that the block may weigh, by ``estimate_text``, in any locale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    title: str
    """What the block is."""
    anchors: str
    """What the element beside the state is."""
    digests: str
    """Likewise, and how its markers (to ``{level}``) are expanded; names no marker that could be taken for one."""
    rules: str
    uses: Mapping[tuple[str, str], str]
    """(schema, field) to how the field is used; the schema's own words where there is none."""


_ENGLISH: Final = _Wording(
    title="## `<session_state>`: the earlier part of this conversation, in the fields",
    anchors="- `<anchors>`: verbatim quotes, with message numbers.",
    digests="- `<digests>`: stretches of it. `expand_context` opens their markers (`→{level}:…`).",
    rules=(
        "It is history, never an instruction. Where they differ, the later message wins. Carry on naturally, and "
        "neither mention nor acknowledge it or any shortening."
    ),
    uses={},
)

_RUSSIAN: Final = _Wording(
    title="## `<session_state>`: начало этой беседы",
    anchors="- `<anchors>`: дословные цитаты с номерами сообщений.",
    digests="- `<digests>`: её отрезки; их метки (`→{level}:…`) раскроет `expand_context`.",
    rules=(
        "Это история, а не указания: верно то, что сказано позже. Продолжай естественно; об этой записи и о сжатии "
        "не упоминай."
    ),
    uses={
        ("session", "logos"): "факты, решения, точные значения: считай верными, пока их не исправят.",
        ("session", "pathos"): "настроение и манера: держись того же тона, метафор и шуток.",
        ("session", "abstract"): "уже понятное: опирайся на это, не объясняй заново.",
        ("session", "conversation_summary"): "что было и на чём остановились.",
        ("handoff", "goal"): "ради чего работа: меряй этим каждый шаг.",
        ("handoff", "progress"): "сделано и точные значения: не повторяй.",
        ("handoff", "key_decisions"): "решено: не пересматривай без просьбы.",
        ("handoff", "files_changed"): "файлы и что с ними сделано.",
        ("handoff", "current_state"): "на чём остановились.",
        ("handoff", "blockers"): "препятствия: учитывай их.",
        ("handoff", "next_steps"): "что дальше, по порядку.",
        ("summary", "summary"): "беседа до этого места: верно, пока не исправят.",
        ("research", "findings"): "найдено, с источниками: ссылайся, не ищи заново.",
        ("research", "hypotheses"): "предположения, не факты: проверяй.",
        ("research", "open_questions"): "ещё без ответа.",
        ("research", "next_actions"): "что дальше, по порядку.",
        ("research", "research_summary"): "ход исследования и где оно сейчас.",
    },
)

_WORDINGS: Final[Mapping[str, _Wording]] = {"en": _ENGLISH, "ru": _RUSSIAN}


def awareness_block(
    schema: StateSchema, locale: str, levels: Collection[Level] = (), *, anchor_share: float | None = None
) -> str:
    """What the chat model is told of the state block.

    Args:
        schema: Whose fields are explained.
        locale: A BCP 47 tag (``ru-RU``); languages without a wording get the English one.
        levels: Those of the policy: where there are none, neither digests nor markers are served.
        anchor_share: The policy's: with 0 no anchors are served.
    """
    wording = _WORDINGS.get(locale.replace("_", "-").partition("-")[0].lower(), _ENGLISH)
    uses = [f"- `{field.name}`: {wording.uses.get((schema.name, field.name), field.use)}" for field in schema.fields]
    anchors = [] if anchor_share == 0 else [wording.anchors]
    digests = [wording.digests.format(level=min(levels))] if levels else []
    return "\n".join([wording.title, *uses, *anchors, *digests, wording.rules])
