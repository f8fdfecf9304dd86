"""Figures, labels, plural forms, the probe, what a reply drew on, and Prometheus' text, by values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from babel import UnknownLocaleError
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from app.core.model import instruments
from app.core.model.conversation import Layout, Message, Usage
from app.core.model.figure_labels import figure_labels, percent, trigger_label
from app.core.model.policies.resolving import resolve
from app.core.model.records import Attempt, Compaction
from app.core.model.statistics import (
    ASKED_AGAIN,
    CallPurpose,
    CallTally,
    CompactionTally,
    ExpansionTally,
    Latency,
    LevelMeasure,
    Measurements,
    PromptEffect,
    RepairTally,
)
from app.core.retrieval.recall_use import uses_passages
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, catalogue_of, languages, read_catalogues
from app.core.validation.kept_values import MAX_VALUES, exact_values, fidelity, is_whole_in
from app.infrastructure import metrics
from app.infrastructure.metrics import MAX_SERIES, ProcessMeter
from app.providers.replies import usage_of
from app.usecases.admin.measuring import count_compaction
from tests.builders import leaves
from tests.corpus import assert_values, assert_verdicts, corpus

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def message(content: str, seq: int = 1) -> Message:
    return Message(id=uuid4(), conversation_id=uuid4(), seq=seq, role="user", content=content, created_at=NOW)


# --- figures ------------------------------------------------------------------------------------------------------


def tally(trigger: str, status: str, count: int, **more: Any) -> CompactionTally:
    return CompactionTally(trigger=trigger, status=status, ran_in="worker", reason=None, count=count, **more)


MEASURED = Measurements(
    compactions=[
        tally("background", "applied", 2, messages=30, tokens_before=5_000, tokens_after=2_000),
        tally("manual", "applied", 1, messages=10, tokens_before=3_000, tokens_after=1_500),
        tally("background", "failed", 4, messages=99),
        tally("sync", "running", 1),
    ],
    calls=[
        CallTally(purpose="compaction", outcome="refused", reason="cut_off", count=2),
        CallTally(purpose="compaction", outcome="error", reason="timeout", count=1),
        CallTally(purpose="compaction", outcome="accepted", reason=None, count=3),
    ],
    expansions=[
        ExpansionTally(way="automatic", count=4, passages=9, tokens=900, used=1, judged=3),
        ExpansionTally(way="explicit", count=2, passages=2, tokens=50, used=0, judged=0),
    ],
)


def test_sums_follow_from_the_tallies() -> None:
    assert (MEASURED.total, MEASURED.applied, MEASURED.in_flight) == (8, 3, 1)
    assert MEASURED.compactions_by("trigger") == {"background": 6, "manual": 1, "sync": 1}
    assert MEASURED.compactions_by("reason") == {}
    assert (MEASURED.tokens_saved, MEASURED.messages) == (4_500, 40)
    assert MEASURED.calls_by("reason") == {"cut_off": 2, "timeout": 1}
    assert MEASURED.used_share == round(1 / 3, 4)


def test_of_nothing_there_is_no_share() -> None:
    empty = Measurements()
    assert (empty.used_share, Latency().mean_ms) == (None, None)
    assert LevelMeasure(level="L1", segments=0, tokens=0, original_tokens=0).ratio is None


def test_calls_for_summaries_are_counted_by_their_prompt() -> None:
    def tally(version: str | None, outcome: str, count: int, purpose: CallPurpose = "compaction") -> CallTally:
        return CallTally(purpose=purpose, outcome=outcome, reason=None, count=count, prompt_version=version)

    calls = [
        tally("summary-1", "refused", 2),
        tally(None, "accepted", 3),
        tally("summary-2", "accepted", 3),
        tally("summary-2", "error", 1),
        tally("summary-1", "refused", 1),
        tally(None, "accepted", 9, "detail"),
    ]
    assert [astuple(one)[:4] for one in Measurements(calls=calls).by_prompt_version] == [
        ("summary-2", 4, 3, 0),
        (None, 3, 3, 0),
        ("summary-1", 3, 0, 3),
    ]
    assert Measurements().by_prompt_version == []


def test_what_came_of_a_prompt_stands_beside_its_calls_and_a_worse_one_is_seen() -> None:
    def of(version: str, *, again: int, refused: int, doubts: int, fidelity: float) -> Measurements:
        def tally(outcome: str, reason: str | None, count: int) -> CallTally:
            used = Usage(input_tokens=100 * count, output_tokens=10 * count)
            return CallTally(
                purpose="compaction", outcome=outcome, reason=reason, count=count, usage=used, prompt_version=version
            )

        return Measurements(
            calls=[
                tally("accepted", None, 8),
                tally("accepted", ASKED_AGAIN, again),
                tally("refused", "skeleton", refused),
            ],
            repairs=[
                RepairTally(reason="novel_value", prompt_version=version, count=again),
                RepairTally(reason="not_stated", prompt_version=version, count=doubts),
                RepairTally(reason="set_aside", prompt_version="another", count=9),
            ],
            prompts=[PromptEffect(prompt_version=version, compactions=8, fidelity=fidelity)],
        )

    (good,) = of("summary-2", again=1, refused=0, doubts=0, fidelity=0.95).by_prompt_version
    (bad,) = of("summary-x", again=4, refused=3, doubts=2, fidelity=0.7).by_prompt_version
    assert astuple(good) == ("summary-2", 9, 9, 0, 1, 900, 90, 8, 1, 0, 0.95)
    assert astuple(bad) == ("summary-x", 15, 12, 3, 4, 1_500, 150, 8, 4, 2, 0.7)


def test_an_unknown_price_counts_as_nothing_beside_a_known_one() -> None:
    priced = [
        CallTally(purpose="detail", outcome="accepted", reason=None, count=1, usage=Usage(cost_usd=cost))
        for cost in (None, 0.25, 0.5)
    ]
    assert Measurements(calls=priced).usage.cost_usd == 0.75
    assert Measurements(calls=priced[:1]).usage.cost_usd is None
    assert Measurements(calls=priced).cost_of_one.cost_usd is None, "of no compaction"


# --- languages ----------------------------------------------------------------------------------------------------


RUSSIAN = {"one": (1, 21, 101, 1_001), "few": (2, 3, 4, 22, 134), "many": (0, 5, 11, 12, 14, 20, 111, 112, 1_000)}


@pytest.mark.parametrize(("form", "numbers"), RUSSIAN.items())
def test_russian_plurals(form: str, numbers: tuple[int, ...]) -> None:
    rules = CATALOGUES["ru"].plurals
    assert {rules(number) for number in numbers} == {form}
    assert rules(Decimal("1.5")) == rules(Decimal("2.0")) == "other"


def test_english_plurals() -> None:
    rules = CATALOGUES["en"].plurals
    assert [rules(Decimal(number)) for number in ("1", "0", "2", "11", "1.0")] == ["one", *["other"] * 4]


def test_the_form_is_that_of_the_number_as_it_is_shown() -> None:
    written = {0.999: "1 compaction", 1.0: "1 compaction", 1.5: "1.5 compactions"}
    assert {count: CATALOGUES["en"].text("summary.compactions", count=count) for count in written} == written
    assert CATALOGUES["en"].text("summary.compactions", count="1.0") == "1.0 compactions"


def test_a_language_that_the_cldr_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "xx.toml").write_text('language = "xx"\n[numbers]\ngroup = "."\ndecimal = ","\n', encoding="utf-8")
    with pytest.raises(UnknownLocaleError, match="xx"):
        read_catalogues(tmp_path)


def test_every_catalogue_says_everything_with_the_same_places() -> None:
    english = CATALOGUES[FALLBACK]
    assert set(CATALOGUES) >= {"en", "ru"}
    for catalogue in CATALOGUES.values():
        assert catalogue.messages.keys() == english.messages.keys(), catalogue.language
        for key, said in catalogue.messages.items():
            assert places(said) == places(english.messages[key]), (catalogue.language, key)
            if not isinstance(said, str):
                wanted = catalogue.plurals.tags | {"other"}
                assert said.keys() == wanted, (catalogue.language, key)


def places(said: str | Mapping[str, str]) -> set[str]:
    texts = [said] if isinstance(said, str) else list(said.values())
    found = [set(re.findall(r"\{(\w+)\}", text)) for text in texts]
    assert all(one == found[0] for one in found), said
    return found[0]


def test_a_language_is_added_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "de.toml").write_text(
        'language = "de"\n[numbers]\ngroup = "."\ndecimal = ","\n'
        '[summary.saved]\none = "{count} Token gespart"\nother = "{count} Tokens gespart"\n',
        encoding="utf-8",
    )
    german = read_catalogues(tmp_path)["de"]
    assert german.text("summary.saved", count=1) == "1 Token gespart"
    assert german.text("summary.saved", count=12_345) == "12.345 Tokens gespart"
    assert german.text("trigger.manual") == "on request", "what a file lacks is said in English"
    assert german.text("summary.messages", count=1) == "1 message summarised"


def test_numbers_are_written_as_the_language_writes_them() -> None:
    assert CATALOGUES["ru"].text("summary.saved", count=12_345) == "сэкономлено 12\u00a0345 токенов"
    assert CATALOGUES["en"].text("summary.saved", count=1_000) == "1,000 tokens saved"
    assert CATALOGUES["ru"].number(1_234.5, 2) == "1\u00a0234,50"


def test_the_language_that_is_wished_for() -> None:
    """One of the cases is ``*``, which Node's fetch sends."""
    assert_values(corpus("wished_languages"), lambda wishes: catalogue_of(*wishes).language)


@given(st.text(max_size=3_000))
def test_any_header_is_taken(header: str) -> None:
    assert catalogue_of(header).language in CATALOGUES
    assert all(one.isalpha() for one in languages(header))


def test_triggers_are_named_with_the_policys_own_thresholds() -> None:
    catalogue, policy = CATALOGUES["en"], resolve("semantic", {})
    assert trigger_label(catalogue, "background", policy) == "in the background, at 70 %"
    assert trigger_label(CATALOGUES["ru"], "sync", policy) == "перед ответом, при 85 %"
    assert trigger_label(catalogue, "sync", resolve("semantic", {"sync_at": 0.925})) == "before a reply, at 92.5 %"
    assert trigger_label(catalogue, "manual", policy) == "on request"
    assert trigger_label(catalogue, "max_tokens", resolve("semantic", {"max_tokens": 8_000})) == (
        "at the token limit, above 8,000 tokens"
    )
    mixed = resolve("handoff", {})
    (both,) = (one.name for one in mixed.triggers if one.at.tokens and one.at.share)
    assert trigger_label(catalogue, both, mixed) == trigger_label(catalogue, both)
    assert trigger_label(catalogue, "something_new") == "something new"
    assert (percent(0.7), percent(0.29), percent(0.075)) == (70, 29, 7.5)


def test_labels_stand_under_the_paths_of_figures() -> None:
    figures = {"tokens": {"saved": 3}, "latency": {"turn": {"p95_ms": 1.0}}, "levels": [{"ratio": 0.1}], "strange": 1}
    labels = figure_labels(CATALOGUES["ru"], figures)
    assert labels["tokens.saved"] == "Токенов сэкономлено"
    assert labels["latency.turn.p95_ms"] == "Время ходов: 95-й процентиль, мс"
    assert "strange" not in labels


# --- the probe ----------------------------------------------------------------------------------------------------


def layout(**fields: Any) -> Layout:
    return Layout(text="{}", tokens=1, **fields)


SPAN = [
    message("Meet Anna Petrova on 2026-03-05, room B12, budget $4,500."),
    message("Port 8080 on db7.example.com", 2),
]


def test_the_probe_counts_what_stands_verbatim() -> None:
    values = exact_values(SPAN)
    assert {"2026-03-05", "B12", "8080"} <= set(values)
    everything = {"logos": [one.content for one in SPAN]}
    assert fidelity(values, state=everything, layout=layout()) == 1.0
    assert fidelity(values, state={"logos": []}, layout=layout()) == 0.0
    half = fidelity(values, state={"logos": ["On 2026-03-05"]}, layout=layout(anchors="room B12", digests="8080"))
    assert half == round(3 / len(values), 4)


def test_held_messages_are_served() -> None:
    values = exact_values(SPAN[1:])
    assert fidelity(values, state={}, layout=layout(held=(2,)), span=SPAN) == 1.0
    assert fidelity(values, state={}, layout=layout(held=(1,)), span=SPAN) == 0.0


def test_without_exact_values_there_is_no_probe() -> None:
    assert fidelity(exact_values([message("well then, fine")]), state={}, layout=layout()) is None


def test_what_was_redacted_is_no_value() -> None:
    assert exact_values([message("the key is [REDACTED:api_key]")]) == ()


def test_a_value_stands_as_a_whole() -> None:
    assert_verdicts(corpus("whole_values"), lambda text: is_whole_in(text["value"], text["text"]))


def test_signs_of_han_have_no_blanks_between_them() -> None:
    assert is_whole_in("2026年3月", "会议在2026年3月举行")


def test_the_work_of_a_probe_is_bounded() -> None:
    many = exact_values([message(" ".join(f"X{number}-{number}" for number in range(5 * MAX_VALUES)))])
    assert len(many) <= MAX_VALUES


# --- what a reply drew on ------------------------------------------------------------------------------------------


PASSAGE = "Anna keeps the rescue dog Pixel at her cottage near Lake Ladoga since 12 May."


def test_a_reply_draws_on_what_the_question_lacks() -> None:
    assert_verdicts(
        corpus("drawn_replies"), lambda text: uses_passages(text["reply"], [PASSAGE], question=text["question"])
    )


def test_russian_replies_draw_on_inflected_words() -> None:
    passage = "Мы решили перенести склад в Казань, потому что аренда там дешевле."
    assert uses_passages("Перенос склада в Казань из-за дешёвой аренды.", [passage], question="Почему?")
    assert not uses_passages("Не помню такого разговора.", [passage], question="Почему переезжаем?")


# --- Prometheus ----------------------------------------------------------------------------------------------------


def compaction(**fields: Any) -> Compaction:
    given_: dict[str, Any] = {
        "id": uuid4(),
        "tenant_id": uuid4(),
        "conversation_id": uuid4(),
        "trigger": "background",
        "ran_in": "worker",
        "status": "applied",
        "requested_at": NOW,
        "finished_at": NOW + timedelta(seconds=2),
        "duration_ms": 2_000,
        "tokens_before": 2_600,
        "tokens_after": 1_800,
        "messages_covered": 20,
        "fidelity": 0.9,
        "attempts": (
            Attempt(model="m", outcome="refused", reason="cut_off", duration_ms=900, usage=Usage()),
            Attempt(model="m", outcome="accepted", reason=None, duration_ms=800, usage=Usage()),
        ),
        "usage": Usage(input_tokens=900, output_tokens=80, cached_tokens=300, cost_usd=0.01),
    }
    return Compaction(**given_ | fields)


def samples(text: str) -> dict[str, float]:
    """The lines of Prometheus' text format."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, number = line.rsplit(" ", 1)
            assert re.fullmatch(r'[a-z_]+(\{([a-z_]+="[^"\n]*",?)+\})?', name), line
            found[name] = float(number)
    return found


def test_a_compaction_in_prometheus_words() -> None:
    meter = ProcessMeter()
    count_compaction(meter, compaction())
    count_compaction(meter, compaction(status="failed", reason="timeout", tokens_after=None, fidelity=None))
    shown = samples(meter.render())
    assert shown['throughline_compactions_total{ran_in="worker",status="applied",trigger="background"}'] == 1
    assert shown['throughline_tokens_saved_total{trigger="background"}'] == 800
    assert shown['throughline_model_calls_total{outcome="refused",purpose="compaction"}'] == 2
    assert shown['throughline_model_call_reasons_total{purpose="compaction",reason="cut_off"}'] == 2
    assert shown['throughline_model_tokens_total{kind="cached",purpose="compaction"}'] == 600
    assert shown['throughline_compaction_duration_seconds_bucket{le="2.5",ran_in="worker"}'] == 2
    assert shown['throughline_compaction_duration_seconds_bucket{le="1",ran_in="worker"}'] == 0
    assert shown['throughline_compaction_duration_seconds_sum{ran_in="worker"}'] == 4
    assert shown["throughline_compaction_fidelity_count"] == 1


def test_what_grew_takes_nothing_off_a_counter() -> None:
    meter = ProcessMeter()
    count_compaction(meter, compaction(trigger="erasure", tokens_before=100, tokens_after=150))
    assert samples(meter.render())['throughline_tokens_saved_total{trigger="erasure"}'] == 0
    with pytest.raises(ValueError, match="non-negative"):
        meter.count(instruments.TURNS, -1, status="completed")


def test_buckets_hold_what_is_at_most_their_bound() -> None:
    meter = ProcessMeter()
    for value in (0.7, 0.70001, 3.0):
        meter.observe(instruments.UTILIZATION, value)
    shown = samples(meter.render())
    assert shown['throughline_context_utilization_bucket{le="0.7"}'] == 1
    assert shown['throughline_context_utilization_bucket{le="0.8"}'] == 2
    assert (
        shown['throughline_context_utilization_bucket{le="+Inf"}']
        == shown["throughline_context_utilization_count"]
        == 3
    )


def test_no_label_fills_the_memory() -> None:
    meter = ProcessMeter()
    for number in range(10 * MAX_SERIES):
        meter.count(instruments.COMPACTION_REASONS, reason=f'a "reason"\n{number}')
    shown = meter.render()
    assert len([line for line in shown.splitlines() if line.startswith("throughline_compaction_reasons_total{")]) <= (
        MAX_SERIES + 1
    )
    assert 'reason="other"' in shown
    assert '\\"reason\\"\\n' in shown


def test_opentelemetry_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = Exported()
    monkeypatch.setattr(metrics, "get_meter", lambda name: exported)
    meter = ProcessMeter()
    count_compaction(meter, compaction())
    meter.set(instruments.COMPACTIONS_IN_FLIGHT, 3, status="queued")
    told = exported.told
    words = {"trigger": "background", "status": "applied", "ran_in": "worker"}
    assert ("throughline.compactions", 1, words) in told
    assert ("throughline.compaction.duration.seconds", 2.0, {"ran_in": "worker"}) in told
    assert ("throughline.compactions.in.flight", 3, {"status": "queued"}) in told
    shown = samples(meter.render())
    counted = [(name, number) for name, number, _ in told if name == "throughline.model.tokens"]
    assert sum(number for _, number in counted) == sum(
        number for name, number in shown.items() if name.startswith("throughline_model_tokens_total")
    )


class Exported:
    """Stands for OpenTelemetry's meter and each of its instruments, as far as they are used."""

    def __init__(self, name: str = "", told: list[tuple[str, float, dict[str, str]]] | None = None) -> None:
        self.name, self.told = name, [] if told is None else told

    def create_counter(self, name: str, **_: Any) -> Exported:
        return Exported(name, self.told)

    create_gauge = create_histogram = create_counter

    def add(self, number: float, labels: dict[str, str]) -> None:
        self.told.append((self.name, number, labels))

    record = set = add


def test_the_page_names_every_instrument_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
    table, metrics_ = (
        page.split(f"\n## {name}\n")[1].split("\n## ")[0] for name in ("Prometheus", "Metrics of the designs")
    )
    named = {name for line in table.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    assert {one.name for one in instruments.INSTRUMENTS} <= named
    cells = [line.split("|")[4] for line in metrics_.splitlines() if line.startswith("| ") and line.count("|") == 5]
    told = {name for cell in cells[1:] for name in re.findall(r"`(\w+)(?:\{[^`]*)?`", cell)}
    labels = {label for one in instruments.INSTRUMENTS for label in one.labels}
    assert len(told) >= 10
    assert told - labels <= {one.name for one in instruments.INSTRUMENTS}


def test_each_alert_of_the_page_asks_for_series_that_exist() -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text()
    rules = page.split("\n**Alerts.**")[1].split("```yaml\n")[1].split("```")[0]
    known = {f"throughline_{one.name}": set(one.labels) for one in instruments.INSTRUMENTS}
    asked = re.findall(r"(throughline_\w+)(?:\{(\w+)=)?", rules)
    assert len(asked) >= rules.count("- alert:") == 5
    for name, label in asked:
        assert name in known
        assert not label or label in known[name]


def test_cached_tokens_cost_their_own_price() -> None:
    def cost(cached: int) -> float:
        usage = RequestUsage(input_tokens=100_000, output_tokens=1_000, cache_read_tokens=cached)
        answered = ModelResponse(parts=[], usage=usage, model_name="gemini-2.5-flash", provider_name="google")
        found = usage_of(TestModel(), answered).cost_usd
        assert found is not None
        return found

    assert 0 < cost(90_000) < 0.6 * cost(0)


def test_every_instrument_is_described_once_and_nothing_else_is_shown() -> None:
    meter = ProcessMeter()
    count_compaction(meter, compaction())
    lines = meter.render().splitlines()
    kinds = [f"# TYPE throughline_{one.name} {one.kind}" for one in instruments.INSTRUMENTS]
    helps = [f"# HELP throughline_{one.name} {one.help}" for one in instruments.INSTRUMENTS]
    assert [line for line in lines if line.startswith("# TYPE")] == kinds, "no process, no _created"
    assert [line for line in lines if line.startswith("# HELP")] == helps
    bounds = re.findall(
        r'^throughline_compaction_duration_seconds_bucket\{le="([^"]+)"', "\n".join(lines), re.MULTILINE
    )
    assert bounds == [*(f"{bound:g}" for bound in instruments.COMPACTION_TIME.buckets), "+Inf"]
    counters = [one for one in instruments.INSTRUMENTS if one.kind == "counter"]
    assert all(one.name.endswith("_total") for one in counters)
    assert all(not {"id", "conversation", "tenant"} & set(one.labels) for one in instruments.INSTRUMENTS)


def test_the_walk_of_the_labels_is_the_walk_of_json() -> None:
    """``figure_labels`` finds every leaf that a client finds."""
    figures = {"a": {"b": 1}, "c": [{"d": 2}, {"d": 3}]}
    paths = {path for path, _ in leaves(json.loads(json.dumps(figures)))}
    assert paths == {"a.b", "c.d"}
