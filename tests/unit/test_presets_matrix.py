"""``GET /presets`` is the matrix of ``docs/presets-matrix.md``, cell by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.resolving import PRESETS, resolve
from tests.unit.api_fakes import world

Json = dict[str, Any]

MATRIX: Final = Path(__file__).parents[2] / "docs" / "presets-matrix.md"

LARGE: Final = 1_048_576
_UNITS: Final = {"budget": "share", "window": "window"}


def table() -> dict[str, dict[str, str]]:
    """The cells by row and preset; an empty cell has the value of ``semantic``."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in MATRIX.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    )
    names = [re.findall(r"`(\w+)`", cell)[0] for cell in head[1:]]
    return {row[0]: {name: cell or row[1] for name, cell in zip(names, row[1:], strict=True)} for row in rows}


def shared_by_all() -> dict[str, str]:
    """The items of the line "The same in every preset"."""
    (line,) = re.findall(r"^The same in every preset: (.+?)\. Gauge:", MATRIX.read_text(encoding="utf-8"), re.MULTILINE)
    return {words: words for words in line.split(" · ")}


def number(words: str) -> int:
    """A number such as ``80 000``."""
    return int(words.replace(" ", ""))


def threshold(words: str, unit: str) -> Json:
    """The threshold in ``≥ 0.70 of the budget`` or ``> min(80 000, 0.85 × budget) tokens``; the last unit holds on."""
    if least := re.search(r"> min\(([\d ]+), ([\d.]+) × budget\) tokens", words):
        return {"tokens": number(least[1]), "share": float(least[2])}
    (share,) = re.findall(r"≥ ([\d.]+)", words)
    return {unit: float(share)}


def triggers(words: str) -> list[Json]:
    """Every trigger in a cell, in order, with all its fields."""
    found: list[Json] = []
    unit = "share"
    for sentence in words.split(";"):
        turns = re.search(r"keep (\d+) turn|keep the current turn and (\d+) before", sentence)
        messages = re.search(r"fold all but the last (\d+) messages", sentence)
        run = re.search(r"→ (\w+)", sentence)
        for name, rest in re.findall(r"`(\w+)`: ([^`→]+)", sentence):
            unit = next((_UNITS[word] for word in re.findall(r"of the (budget|window)", rest)), unit)
            assert run is not None, sentence
            found.append(
                {
                    "name": name,
                    "on": rest.split()[0],
                    "at": dict.fromkeys(("share", "window", "tokens", "messages")) | threshold(rest, unit),
                    "run": run[1],
                    "keep_turns": int(turns[1] or turns[2]) if turns else 0,
                    "keep_messages": int(messages[1]) if messages else 0,
                    "keep_tokens": 0,
                }
            )
    return found


def without_fold(policy: Json) -> list[Json]:
    return [{name: value for name, value in one.items() if name != "fold"} for one in policy["triggers"]]


def is_triggers(words: str, policy: Json) -> None:
    assert without_fold(policy) == triggers(words)
    if "fold all" in words:
        assert {one["fold"] for one in policy["triggers"]} == {"all"}


def is_fold_and_target(words: str, policy: Json) -> None:
    fold, target = words.split(", ")
    assert {one["fold"] for one in policy["triggers"]} == {fold}
    if target != "–":
        assert policy["target"] == float(target)


def is_manual_keep(words: str, policy: Json) -> None:
    count, unit = words.split()
    kept = dict.fromkeys(("turns", "messages", "tokens"), 0)
    assert policy["manual_keep"] == kept | {unit.rstrip("s") + "s": int(count)}


def is_window_share_and_reserve(words: str, policy: Json) -> None:
    share, reserve = words.split(", ", 1)
    assert policy["window_share"] == float(share)
    if reserve.isdigit():
        assert policy["output_reserve"] == int(reserve)
        return
    (most, part) = re.findall(r"min\(([\d ]+), ([\d.]+) × limit\)", reserve)[0]
    assert policy["output_reserve"] is None
    for limit in (4_000, LARGE):
        expected = limit - min(number(most), int(float(part) * limit))
        assert budgets_of(CompactionPolicy.model_validate(policy), limit).window == expected


def is_context_window(words: str, policy: Json) -> None:
    assert policy["context_window"] == (None if words == "model's" else number(words))


def budgets_of_models(policy: Json) -> tuple[Budgets, Budgets]:
    """The budgets for a large model and for a small one."""
    typed = CompactionPolicy.model_validate(policy | {"context_window": None})
    return budgets_of(typed, LARGE, output_limit=LARGE), budgets_of(typed, 4_000, output_limit=LARGE)


def is_state_cap(words: str, policy: Json) -> None:
    assert policy["state_cap"] == (None if words == "2 × state_tokens" else number(words))
    for one in budgets_of_models(policy):
        assert one.state_cap == min(2 * one.state_tokens, policy["state_cap"] or LARGE)


def is_state_tokens(words: str, policy: Json) -> None:
    large, small = budgets_of_models(policy)
    if share := re.fullmatch(r"min\(([\d.]+) × window, half the summarizer's output limit\)", words):
        assert [one.state_tokens for one in (large, small)] == [int(float(share[1]) * b.window) for b in (large, small)]
        typed = CompactionPolicy.model_validate(policy)
        assert budgets_of(typed, LARGE, output_limit=8_000).state_tokens == 4_000
    else:
        assert policy["state_share"] is None
        assert policy["state_tokens"] == large.state_tokens == number(words)
        assert small.state_tokens == min(number(words), int(0.12 * small.budget))


def is_levels_and_recall(words: str, policy: Json) -> None:
    levels, recall = words.split(" / ")
    ways = {"off": [], "L1–L3": ["L1", "L2", "L3"]}
    assert policy["levels"] == ways.get(levels, levels.split(", "))
    assert policy["recall"] == recall


def is_anchor_share(words: str, policy: Json) -> None:
    assert policy["anchor_share"] == (None if words == "all there is" else float(words.split(maxsplit=1)[0]))


def is_protect(words: str, policy: Json) -> None:
    said = re.sub(r"turn 0('s message)?", "turn_0", words).replace("`", "").replace("goal s", "goal_s")
    assert policy["protect"] == ([] if said == "none" else said.split(", "))


def is_on_failure(words: str, policy: Json) -> None:
    assert policy["on_failure"] == words.split(",", maxsplit=1)[0]


def is_switch(words: str, policy: Json) -> None:
    assert policy["inject_system_context"] is {"on": True, "off": False}[words.split(":", maxsplit=1)[0]]


def first_word(field: str) -> Callable[[str, Json], None]:
    """A field that is one word, which an explanation may follow after a colon."""

    def is_word(words: str, policy: Json) -> None:
        assert policy[field] == words.split(":", maxsplit=1)[0]

    return is_word


def is_pin_share_and_over_allotment(words: str, policy: Json) -> None:
    share, what = words.split(" / ")
    assert (policy["pin_share"], policy["over_allotment"]) == (float(share), what)


def plain(field: str) -> Callable[[str, Json], None]:
    """A field with its value in JSON, such as ``0.05``, or a word."""

    def is_value(words: str, policy: Json) -> None:
        assert policy[field] == (json.loads(words) if words[0].isdigit() else words)

    return is_value


CHECKS: Final[Mapping[str, Callable[[str, Json], None]]] = {
    "state_schema": lambda words, policy: first_word("state_schema")(words.strip("`"), policy),
    "triggers (name: when → where)": is_triggers,
    "fold, target": is_fold_and_target,
    "manual_keep": is_manual_keep,
    "window_share, output_reserve": is_window_share_and_reserve,
    "context_window": is_context_window,
    "estimator": first_word("estimator"),
    "state_tokens (at most 0.12 × budget except `turn_end`)": is_state_tokens,
    "state_cap": is_state_cap,
    "served_as": first_word("served_as"),
    "levels / recall": is_levels_and_recall,
    "anchor_share": is_anchor_share,
    "protect": is_protect,
    "pin_share / over_allotment": is_pin_share_and_over_allotment,
    "on_failure (automatic)": is_on_failure,
    "inject_system_context": is_switch,
    "on_disconnect": first_word("on_disconnect"),
    "summarizer": first_word("summarizer"),
    "notifications": first_word("notifications"),
}
"""The rows that are not a field and its plain value."""
PLAIN: Final = {row: plain(row) for row in table() if row in CompactionPolicy.model_fields and row not in CHECKS}
ROWS: Final = {**CHECKS, **PLAIN}
BOUNDS: Final = ("background_min", "background_max", "target_min", "target_max")
SAME: Final[Mapping[str, Json]] = {
    "digest_share 0.10": {"digest_share": 0.10},
    "recall share 0.15": {"recall_share": 0.15},
    "held_roles system": {"held_roles": ["system"]},
    "segment_by topic": {"segment_by": {"by": "topic", "size": None}},
    "oversized refuse": {"oversized": "refuse"},
    "fallback_model none": {"fallback_model": None},
    "adaptive off": {"adaptive": "off", "adaptive_bounds": dict.fromkeys(BOUNDS)},
    "verify auto": {"verify": "auto"},
    "verifier_model none": {"verifier_model": None},
    "continuity_floor none": {"continuity_floor": None},
    "instructions empty": {"instructions": ""},
    "reasoning shown": {"reasoning": "shown"},
    "minimum_progress 0.05": {"minimum_progress": 0.05},
    "sync_deadline 20 s": {"sync_deadline": 20.0},
    "6 model calls per chunk in the background": {"calls_per_chunk": 6},
    "40 calls per conversation and hour": {"calls_per_hour": 40},
    "cache auto": {"cache": "auto"},
    "cache_ttl 3,600 s": {"cache_ttl": 3_600},
}


async def shown() -> dict[str, Json]:
    """The answer of ``GET /presets``, by name."""
    async with world().client(key=None) as client:
        return {one["name"]: one for one in (await client.get("/presets")).json()["data"]}


async def test_there_are_the_presets_of_its_columns_in_its_order() -> None:
    columns = table()["from"]
    without = [name for name in PRESETS if name not in columns]
    assert not without, f"docs/presets-matrix.md has no column for {without}"
    assert list(await shown()) == list(columns)
    assert {name: one["design"] for name, one in (await shown()).items()} == columns


async def test_every_row_and_every_shared_field_is_compared() -> None:
    assert set(table()) == {"from", *ROWS}, "a row of docs/presets-matrix.md has no check here, or a check no row"
    assert list(shared_by_all()) == list(SAME)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", table()["from"])
async def test_a_cell(name: str, row: str) -> None:
    ROWS[row](table()[row][name], (await shown())[name]["policy"])


@pytest.mark.parametrize("name", PRESETS)
async def test_what_is_the_same_in_every_preset(name: str) -> None:
    policy = (await shown())[name]["policy"]
    for words, fields in SAME.items():
        assert {field: policy[field] for field in fields} == fields, words


@pytest.mark.parametrize("row", ROWS)
def test_another_policy_would_be_found_out(row: str) -> None:
    """The control: a policy in which every value differs fits no cell of ``semantic``."""
    other = resolve(
        "sessions",
        {
            "state_schema": "research",
            "triggers": [{"name": "sync", "on": "before_call", "at": {"share": 0.9}, "run": "inline", "fold": "all"}],
            "target": 0.5,
            "manual_keep": {"turns": 3},
            "estimator": "bytes",
            "state_tokens": 700,
            "served_as": "assistant",
            "anchor_share": 0.3,
            "on_failure": "keep_full",
            "inject_system_context": True,
            "on_disconnect": "interrupt",
            "summarizer": "chat_model",
            "notifications": "summary",
        },
    ).model_dump(mode="json")
    with pytest.raises(AssertionError):
        ROWS[row](table()[row]["semantic"], other | ({row: "another value"} if row in PLAIN else {}))
