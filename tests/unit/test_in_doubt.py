"""What a model gives up: it goes if the new text repeats much of it; otherwise it is set aside, in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import Candidate
from app.core.model.doubt_marks import with_doubt_marks
from app.core.model.schemas import SESSION
from app.core.model.state import StateEntry
from app.core.state import merge as merge_module
from app.core.state.apply import given_up_without_successor
from app.core.state.merge import MergeResult, merge
from app.core.state.pruning import prune, state_of
from app.core.validation import same_subject
from app.core.validation.same_subject import has_same_subject
from tests.unit.talk import candidate, entry, item, talk

SPAN: Final = talk("one", "two", "three", "four", start=20)
BUDGET: Final = entry("F1", "The travel budget of Clara is 900 euros", seqs=(3,))
CHANGED: Final = "The travel budget is 700 euros"
OTHER: Final = "Oleg wants a red kayak"
DOG: Final = entry("F2", "Clara has an old dog called Rex", seqs=(4,))
OPEN: Final = entry("O3", "Ask the landlord about the balcony", field="logos", seqs=(5,))


def merged(
    previous: Sequence[StateEntry],
    proposed: Candidate,
    *,
    by_model: bool = True,
    anchors: Sequence[FoundAnchor] = (),
    demands: Sequence[int] = (),
) -> MergeResult:
    return merge(SESSION, previous, proposed, SPAN, 7, 50, anchors, by_model=by_model, demands=demands)


def by_id(result: MergeResult) -> dict[str, StateEntry]:
    return {one.id: one for one in result.entries}


def anchored(content: str) -> FoundAnchor:
    return FoundAnchor(type="decision", content=content, seq=3, offset=0, importance=0.5, token_count=10)


# --- what says much of it again


@pytest.mark.parametrize(
    ("statement", "earlier", "again"),
    [
        (CHANGED, BUDGET.text, True),
        ("Clara's dog Rex died", DOG.text, True),
        (OTHER, BUDGET.text, False),
        ("Clara wants a red kayak", BUDGET.text, False),
        ("A budget", BUDGET.text, False),
        ("Бюджет поездки Клары теперь 700 евро", "Бюджет поездки Клары 900 евро", True),
        ("Олег хочет красную лодку", "Бюджет поездки Клары 900 евро", False),
        (OTHER, "", False),
        ("", BUDGET.text, False),
    ],
)
def test_what_tells_an_earlier_statement_again(statement: str, earlier: str, *, again: bool) -> None:
    assert has_same_subject(statement, earlier) is again


WORDS: Final = ["harbour", "lantern", "kayak", "balcony", "violin", "glacier", "pepper", "saddle", "mirror", "turbine"]


@given(st.integers(0, 10), st.integers(1, 10))
def test_sixty_in_a_hundred_of_its_words_are_much(kept: int, of: int) -> None:
    earlier, statement = " ".join(WORDS[:of]), " ".join([*WORDS[:kept], "umbrella", "squirrel"])
    assert has_same_subject(statement, earlier) is (min(kept, of) >= 0.6 * of)


# --- ``replaces``


def test_a_replacement_that_tells_it_again_takes_effect() -> None:
    result = merged([BUDGET, DOG], candidate(item(CHANGED, 20, replaces=["F1"])))
    assert list(by_id(result)) == ["F2", "F50"]
    assert by_id(result)["F50"].superseded == (BUDGET.text,)
    assert (result.counts.superseded, result.repairs) == (1, ())
    (gone,) = result.removed
    assert (gone.id, gone.pruned, gone.replaced_by) == ("F1", True, ("F50",)), "on record"


def test_another_one_sets_it_aside() -> None:
    result = merged([BUDGET, DOG], candidate(item(OTHER, 20, replaces=["F1"])))
    assert [one.id for one in result.entries] == ["F1", "F2", "F50"]
    kept, new = by_id(result)["F1"], by_id(result)["F50"]
    assert (kept.text, kept.from_seqs, kept.in_doubt, kept.replaced_by) == (BUDGET.text, (3,), True, ("F50",))
    assert (new.text, new.superseded, new.in_doubt) == (OTHER, (), False)
    assert (result.counts.superseded, result.counts.dropped, result.counts.kept) == (0, 0, 2)
    assert result.removed == ()
    (repair,) = result.repairs
    assert (repair.reason, repair.field, repair.entry_id, repair.before, repair.after) == (
        "set_aside",
        "logos",
        "F1",
        BUDGET.text,
        BUDGET.text,
    )


def test_one_item_may_replace_one_entry_and_not_another() -> None:
    result = merged([BUDGET, DOG], candidate(item(CHANGED, 20, replaces=["F1", "F2"])))
    assert [(one.id, one.in_doubt) for one in result.entries] == [("F2", True), ("F50", False)]
    assert [repair.entry_id for repair in result.repairs] == ["F2"]


def test_one_of_several_items_is_enough() -> None:
    told = candidate(item(OTHER, 20, replaces=["F1"]), item(CHANGED, 21, replaces=["F1"]))
    result = merged([BUDGET], told)
    assert not any(one.in_doubt for one in result.entries)
    assert "F1" not in by_id(result)


def test_control_without_the_comparison_anything_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_module, "has_same_subject", lambda *_: True)
    result = merged([BUDGET, DOG], candidate(item(OTHER, 20, replaces=["F1"])))
    assert list(by_id(result)) == ["F2", "F50"], "a true entry lost to a lie"


def test_control_with_a_lower_share_a_shared_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    told = candidate(item("Clara wants a red kayak", 20, replaces=["F1"]))
    assert "F1" in by_id(merged([BUDGET], told))
    monkeypatch.setattr(same_subject, "_MIN_KEPT_SHARE", 0.2)
    assert "F1" not in by_id(merged([BUDGET], told))


# --- ``dropped``


@pytest.mark.parametrize("reason", ["contradicted", "resolved", "no_longer_relevant"])
def test_what_is_dropped_is_set_aside(reason: str) -> None:
    result = merged([BUDGET, DOG], candidate(dropped=[("F1", reason, 20)]))
    assert [(one.id, one.text, one.in_doubt) for one in result.entries] == [
        ("F1", BUDGET.text, True),
        ("F2", DOG.text, False),
    ]
    assert by_id(result)["F1"].replaced_by == ()
    assert [(one.reason, one.entry_id) for one in result.repairs] == [("set_aside", "F1")]
    assert (result.counts.dropped, result.counts.kept) == (0, 2)


def test_an_invalid_drop_changes_nothing() -> None:
    told = candidate(dropped=[("F1", "contradicted", 3), ("F2", "boring", 20), ("F9", "resolved", 20)])
    result = merged([BUDGET, DOG], told)
    assert list(result.entries) == [BUDGET, DOG]
    assert (result.repairs, result.counts.restored_by_code) == ((), 2)


def test_what_is_stated_again_is_not_in_doubt() -> None:
    told = candidate(item(BUDGET.text, 20), dropped=[("F1", "resolved", 20)])
    (one,) = merged([BUDGET], told).entries
    assert (one.id, one.in_doubt) == ("F1", False)


# --- anchors


@pytest.mark.parametrize("given_up", ["dropped", "replaced"])
def test_what_an_active_anchor_says_is_not_even_set_aside(given_up: str) -> None:
    told = (
        candidate(dropped=[("F1", "contradicted", 20)])
        if given_up == "dropped"
        else candidate(item(OTHER, 20, replaces=["F1"]))
    )
    for anchor, aside in (("the travel budget of Clara is 900 EUROS", False), ("Rex is a dog", True)):
        result = merged([BUDGET], told, anchors=[anchored(anchor)])
        assert by_id(result)["F1"].in_doubt is aside
        assert [repair.reason for repair in result.repairs] == ["set_aside" if aside else "kept"]
        assert result.counts.restored_by_code == (0 if aside else 1)


@pytest.mark.parametrize(
    ("anchor", "reason"),
    [("14 и 15.", "set_aside"), ("14.", "set_aside"), ("до 14 и 15 февраля", "kept"), ("письма 14 и 15", "kept")],
)
def test_an_anchor_of_bare_numbers_alone_says_nothing_of_an_entry(anchor: str, reason: str) -> None:
    letters = entry("F1", "Письма 14 и 15. Ответа ждут до 14 и 15 февраля", seqs=(3,))
    result = merged([letters], candidate(item(OTHER, 20, replaces=["F1"])), anchors=[anchored(anchor)])
    assert [repair.reason for repair in result.repairs] == [reason]


def test_an_anchor_that_says_a_small_part_of_an_entry_does_not_keep_it() -> None:
    """The reference of an invoice is an anchor; the entry around it tells of an offer that was replaced since."""
    offer = (
        "Kaneda (20 kg of matcha at 78 euros, invoice KT-88213, moisture 7.2 %) offered on 10 February 2026 a credit "
        "of 624 euros or the March harvest; Nuria prefers the harvest, in writing before 31 March, else the whole price"
    )
    told = candidate(item("The fresh tea arrived", 20, replaces=["F1"]))
    result = merged([entry("F1", offer, seqs=(3,))], told, anchors=[anchored("invoice KT-88213")])
    assert [repair.reason for repair in result.repairs] == ["set_aside"]


def test_an_anchor_keeps_an_entry_of_ordinary_words_alone() -> None:
    told = candidate(item(OTHER, 20, replaces=["F1"]))
    wish = entry("F1", "I want to find the endings by myself.", seqs=(3,))
    result = merged([wish], told, anchors=[anchored("I want to find the endings by myself")])
    assert [repair.reason for repair in result.repairs] == ["kept"]


# --- constraints and goals


@pytest.mark.parametrize(
    "given_up", [candidate(dropped=[("F1", "resolved", 20)]), candidate(item(OTHER, 20, replaces=["F1"]))]
)
def test_what_a_user_set_as_a_constraint_or_a_goal_is_not_even_set_aside(given_up: Candidate) -> None:
    for demands, reason in (([3], "kept"), ([4, 20], "set_aside")):
        result = merged([BUDGET, DOG], given_up, demands=demands)
        kept = by_id(result)["F1"]
        assert (kept.text, kept.in_doubt) == (BUDGET.text, reason == "set_aside")
        assert [(one.reason, one.entry_id, one.after) for one in result.repairs] == [(reason, "F1", BUDGET.text)]
        assert kept.replaced_by == (("F50",) if given_up.items else ())


def test_a_constraint_that_an_item_tells_again_is_replaced() -> None:
    result = merged([BUDGET], candidate(item(CHANGED, 20, replaces=["F1"])), demands=[3])
    assert list(by_id(result)) == ["F50"]


def test_a_constraint_that_was_in_doubt_before_stays_so() -> None:
    doubted = replace(BUDGET, in_doubt=True)
    result = merged([doubted], candidate(dropped=[("F1", "resolved", 20)]), demands=[3])
    assert list(result.entries) == [doubted]


def test_a_replacement_that_tells_it_again_takes_effect_also_on_an_anchor() -> None:
    result = merged([BUDGET], candidate(item(CHANGED, 20, replaces=["F1"])), anchors=[anchored(BUDGET.text)])
    assert list(by_id(result)) == ["F50"]


# --- without a model


def test_without_a_model_it_is_as_before() -> None:
    """The offline summarizer names nothing itself, so everything named takes effect, and nothing is ever in doubt."""
    replaced = merged([BUDGET, DOG], candidate(item(OTHER, 20, replaces=["F1"])), by_model=False)
    assert list(by_id(replaced)) == ["F2", "F50"]
    assert by_id(replaced)["F50"].superseded == (BUDGET.text,)
    dropped = merged([BUDGET, DOG], candidate(dropped=[("F1", "contradicted", 20)]), by_model=False)
    assert list(by_id(dropped)) == ["F2"]
    for result in (replaced, dropped):
        assert (result.repairs, result.by_model) == ((), False)
        assert not any(one.in_doubt for one in result.entries)


# --- how it is served


def test_it_is_served_last_and_marked() -> None:
    result = merged([BUDGET, DOG], candidate(item(OTHER, 20, replaces=["F1"])))
    assert state_of(SESSION, result.entries)["logos"] == [DOG.text, OTHER, f"{BUDGET.text} (in doubt)"]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("The budget for the whole journey is 900 euros", "(in doubt)"),
        ("Бюджет на всю поездку составляет 900 евро", "(под сомнением)"),
        ("Клара думает покрасить стены в синий цвет", "(под сомнением)"),
        ("整个旅行的预算是900欧元", "（存疑）"),
        ("旅行预算900欧元", "（存疑）"),
        ("Das Budget für die ganze Reise beträgt 900 Euro, und mehr ist nicht da", "(fraglich)"),
        ("Le budget pour tout le voyage est de 900 euros et pas plus", "(incertain)"),
        ("El presupuesto para todo el viaje es de 900 euros y no hay más", "(en duda)"),
        ("Rozpočet na celou cestu je 900 eur a více už není", "(nejisté)"),
        ("900 یورو برای همه سفر است", "(in doubt)"),
        ("900", "(in doubt)"),
    ],
)
def test_the_mark_is_in_its_own_language(text: str, mark: str) -> None:
    one = entry("F1", text)
    assert with_doubt_marks([replace(one, in_doubt=True)]) == [f"{text} {mark}"]
    assert with_doubt_marks([one]) == [text], "control"


@pytest.mark.parametrize("text", ["900 €", "BK-2291", "Ines Varga"])
@pytest.mark.parametrize(
    ("beside", "mark"),
    [
        ("Бюджет на всю поездку утверждён, и больше денег нет", "(под сомнением)"),
        ("Das Budget für die ganze Reise ist genehmigt, und mehr ist nicht da", "(fraglich)"),
        ("The budget for the whole journey is approved, and there is no more", "(in doubt)"),
    ],
)
def test_where_a_text_is_too_short_the_mark_is_in_the_language_of_what_stands_beside_it(
    text: str, beside: str, mark: str
) -> None:
    state = state_of(SESSION, [replace(entry("F1", text), in_doubt=True), entry("F2", beside)])
    assert state["logos"] == [beside, f"{text} {mark}"]


def test_beside_others_a_text_that_tells_its_language_keeps_its_own_mark() -> None:
    russian = [entry(f"F{number}", f"Бюджет на {number} поездку утверждён, и больше нет") for number in range(2, 6)]
    doubted = replace(entry("F1", "The budget for the whole journey is 900 euros"), in_doubt=True)
    assert with_doubt_marks([*russian, doubted])[-1] == f"{doubted.text} (in doubt)"


def fitting(most: int) -> Any:
    return lambda state: len(state["logos"]) + len(state["pathos"]) + len(state["abstract"]) <= most


def test_it_is_pruned_first_even_with_values_and_from_every_field() -> None:
    plain = [entry(f"F{number}", f"Clara likes lamp {number}") for number in range(2, 8)]
    doubtful = [
        replace(entry("F1", "The budget is 900 euros for BK-2291"), in_doubt=True),
        replace(entry("F9", "The newest of all"), in_doubt=True),
        replace(entry("S8", "Calm", field="pathos"), in_doubt=True),
    ]
    kept, gone = prune(SESSION, [*plain, *doubtful], fits=fitting(6))
    assert list(kept) == plain
    assert {one.id for one in gone} == {"F1", "F9", "S8"}
    assert all(one.pruned and one.in_doubt for one in gone), "on record"


def test_control_without_doubt_the_value_would_stay() -> None:
    plain = [entry(f"F{number}", f"Clara likes lamp {number}") for number in range(2, 8)]
    kept, gone = prune(SESSION, [*plain, entry("F1", "The budget is 900 euros for BK-2291")], fits=fitting(6))
    assert "F1" in {one.id for one in kept}
    assert "F1" not in {one.id for one in gone}


def test_a_doubt_that_nobody_has_judged_yet_lets_nothing_go_first() -> None:
    plain = [entry(f"F{number}", f"Clara likes lamp {number}") for number in range(2, 8)]
    dropped = replace(entry("F1", "The budget is 900 euros for BK-2291"), in_doubt=True)
    older = replace(entry("F9", "The newest of all"), in_doubt=True)
    kept, gone = prune(SESSION, [*plain, dropped, older], fits=fitting(6), doubted=["F1"])
    assert "F1" in {one.id for one in kept}
    assert {one.id for one in gone} == {"F9", "F2"}
    _, in_the_next_round = prune(SESSION, [*plain, dropped, older], fits=fitting(6))
    assert {one.id for one in in_the_next_round} == {"F9", "F1"}


@pytest.mark.parametrize(
    ("proposed", "stays"),
    [
        (candidate(item(OTHER, 20, replaces=["F1"])), True),
        (candidate(dropped=[("F1", "resolved", 20)]), True),
        (candidate(item("Clara's travel plans", 20, replaces=["F1"])), False),
    ],
)
def test_what_no_successor_tells_anything_of_is_not_the_first_to_go_in_a_full_state(
    proposed: Candidate, *, stays: bool
) -> None:
    result = merged([BUDGET, DOG], proposed)
    assert by_id(result)["F1"].in_doubt, "control: not even that takes effect without a verdict"
    given_up = given_up_without_successor(result.entries, [BUDGET, DOG])
    assert given_up == ({"F1"} if stays else set())


# --- whatever a model gives up


names = st.sampled_from(["F1", "F2", "O3", "F8", "N9"])
drops = st.tuples(names, st.sampled_from(["contradicted", "resolved", "no_longer_relevant", "x"]), st.integers(18, 25))
items = st.builds(
    lambda text, replaces: item(text, 20, replaces=replaces),
    st.sampled_from(
        [CHANGED, OTHER, BUDGET.text, "Rex the old dog of Clara died", "The landlord says no to a balcony"]
    ),
    st.lists(names, max_size=3),
)


@given(st.lists(items, max_size=4), st.lists(drops, max_size=4))
def test_no_entry_is_lost_to_a_models_word(told: list[Any], dropped: list[tuple[str, str, int]]) -> None:
    previous = [BUDGET, DOG, OPEN]
    result = merged(previous, candidate(*told, dropped=dropped))
    served = by_id(result)
    for one in previous:
        if one.id in served:
            assert served[one.id].text == one.text or one.text in served[one.id].superseded
            continue
        successors = [new for new in result.entries if one.text in new.superseded]
        assert any(has_same_subject(new.text, one.text) for new in successors)
        assert one.id in {gone.id for gone in result.removed}
    aside = {one.id for one in result.entries if one.in_doubt}
    assert [repair.entry_id for repair in result.repairs] == [one.id for one in result.entries if one.id in aside]
    assert result.counts.kept + result.counts.superseded + result.counts.restored_by_code == len(previous)
