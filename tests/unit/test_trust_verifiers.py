"""The bench's counts for verifiers, each figure with a case in which it is bad."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.escaping import escape, unescape
from app.core.validation.quotes import MAX_QUOTE_LENGTH, QuoteSearch
from app.core.validation.verdict_application import VerifiedState, apply_verdicts
from app.core.validation.verdicts import Verdict
from bench.trust import effects, verified
from bench.trust.blind import Planned, Recorded
from bench.trust.effects import Counts, effects_of, evidence_of, giving_up_of
from bench.trust.heard import Share, recorded_effects, sentence_shares, wilson
from bench.trust.lies import Lie, planted
from bench.trust.malice import Harm, _plain, harms_of
from bench.trust.playing import Played, played
from bench.trust.rounds import Case
from bench.trust.verified import Asked, asked_of, asked_with, labelled
from tests.unit.trust_cases import plays


def share(counts: Counts, name: str) -> float:
    return sum(counts[name]) / len(counts[name])


def seeing_nothing(case: Case, told: Played) -> Asked:
    """The calls as they would be sent with the first message alone."""
    asked = asked_of(case, told)
    calls = (replace(call, messages=call.messages[:1], older=()) for call in asked.requests)
    return asked_with(case, told, asked.claims, calls)


@pytest.mark.long
def test_the_deciding_messages_are_shown_and_it_is_seen_where_they_are_not() -> None:
    good, bad = evidence_of(plays()), evidence_of(plays(), seeing_nothing)
    for name in (effects.LIES_SHOWN, effects.ITEMS_SHOWN, effects.GIVEN_UP_SHOWN):
        assert len(good[name]) == len(bad[name]) > 2
        assert share(good, name) == 1.0
        assert share(bad, name) < 0.5


@pytest.mark.long
def test_verdicts_without_an_error_have_the_right_effect() -> None:
    found = effects_of(plays())
    assert set(found) >= {effects.LIES_GONE, effects.VALID_BACK, effects.HONEST_UNCHANGED, effects.GIVEN_UP_GONE}
    assert {name: share(found, name) for name in found} == dict.fromkeys(found, 1.0)
    given_up = giving_up_of(plays())
    with_one = share(given_up, "honest `replaces` that took effect, with a verifier")
    assert with_one > share(given_up, "honest `replaces` that took effect, without a verifier")


@pytest.mark.long
def test_verdicts_without_any_effect_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(entries: Sequence[object], *_: object, **others: object) -> VerifiedState:
        return apply_verdicts(entries, (), (), **others)  # type: ignore[arg-type]

    monkeypatch.setattr(verified, "apply_verdicts", unchanged)
    found = effects_of(plays())
    assert share(found, effects.LIES_GONE) == 0.0
    assert share(found, effects.GIVEN_UP_GONE) < 1.0


@pytest.mark.long
def test_verdicts_that_take_everything_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(entries: Sequence[object], *_: object, **others: object) -> VerifiedState:
        return replace(apply_verdicts(entries, (), (), **others), entries=())  # type: ignore[arg-type]

    monkeypatch.setattr(verified, "apply_verdicts", nothing)
    found = effects_of(plays())
    assert share(found, effects.HONEST_UNCHANGED) < 0.5
    assert share(found, effects.VALID_BACK) == 0.0


@pytest.mark.long
def test_no_verifier_takes_an_honest_statement_without_a_true_quote() -> None:
    harms = harms_of(plays())
    assert len(harms) >= 9
    assert {name: harm.without_quote for name, harm in harms.items()} == dict.fromkeys(harms, 0)
    assert {name: harm.others for name, harm in harms.items()} == dict.fromkeys(harms, 0)
    assert harms["nothing is stated anywhere"].doubted > 10


@pytest.mark.long
def test_true_quotes_that_say_something_else_take_everything() -> None:
    name = "everything contradicted, true quotes that say something else"
    harm = harms_of(plays())[name]
    assert harm == Harm(claims=harm.claims, with_quote=harm.claims)
    assert harm.claims > 50


@pytest.mark.long
def test_a_service_that_looks_up_no_quote_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuoteSearch, "seq_of", lambda *_: 1)
    harms = harms_of(plays())
    assert harms["everything contradicted, quotes invented"].without_quote > 50
    assert harms["verdicts inverted, quotes invented"].without_quote > 50
    assert harms["… true quotes with one word changed"].without_quote > 50


def answered(*, honestly: bool) -> list[Recorded]:
    """The three answers with one lie each, judged by a verifier without errors, or by one that supports everything."""
    found = []
    for play in plays():
        lie: Lie = next(one.lie for one in play.lies if one.is_left)
        told = played(play.case, planted(play.case, lie))
        asked = asked_of(play.case, told)
        supported = tuple(Verdict(n=claim.n, verdict="supported") for claim in asked.claims)
        found.append(
            Recorded(
                recorder="somebody",
                planned=Planned(case=play.case, lies=(lie,)),
                outcome=told,
                verdicts=labelled(asked, [lie]) if honestly else supported,
                is_current=honestly,
            )
        )
    return found


@pytest.mark.long
def test_recorded_verdicts_are_played_and_a_careless_recorder_is_noticed() -> None:
    good, bad = recorded_effects(answered(honestly=True)), recorded_effects(answered(honestly=False))
    assert good is not None
    assert bad is not None
    assert (good.lies_gone["all"], bad.lies_gone["all"]) == (Share(found=3, count=3), Share(found=0, count=3))
    assert good.honest_lost["all"].found == 0
    assert good.honest_lost["all"].count > 50
    assert (good.recorders, good.requests, good.current, bad.current) == (("somebody",), 3, 3, 0)
    assert recorded_effects([]) is None


@pytest.mark.parametrize(
    ("found", "count", "low", "high"),
    [(0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (10, 10, 0.722, 1.0), (67, 81, 0.731, 0.894), (0, 0, 0.0, 1.0)],
)
def test_the_interval_of_a_share(found: int, count: int, low: float, high: float) -> None:
    assert wilson(found, count) == pytest.approx((low, high), abs=5e-4)


TRICKY = st.text("aбŞﬁ½²ſ가ᄀ\u1161中́´`'’\"«»＜<&#x3c;amp /message\n\u00a0", min_size=1, max_size=60)


@given(TRICKY, st.integers(0, 59), st.integers(4, MAX_QUOTE_LENGTH), st.sampled_from([str, escape]))
def test_the_bench_finds_every_quote_that_the_service_accepts(
    text: str, start: int, size: int, copied: Callable[[str], str]
) -> None:
    quote = copied(text[start : start + size])
    if QuoteSearch({1: (text,)}).seq_of(quote, 1):
        assert any(_plain(form) in _plain(text) for form in (quote, unescape(quote)))


def test_verdicts_on_the_sentences_of_false_items_keep_true_ones_alone() -> None:
    found = sentence_shares()
    assert found["true"].count > found["false"].count > 60
    assert found["true"].found > found["true"].count // 2
    assert found["false"].found == 0


def test_a_false_sentence_that_is_supported_is_counted(tmp_path: Path) -> None:
    told = [{"text": "They met.", "is_true": False, "verdict": "supported"}]
    (path := tmp_path / "sentences.json").write_text(json.dumps({"items": [{"sentences": told}]}), encoding="utf-8")
    assert sentence_shares(path) == {"true": Share(found=0, count=0), "false": Share(found=1, count=1)}
