from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.model.candidate import Candidate, CandidateDrop, CandidateItem
from app.core.model.conversation import Message
from app.core.model.schemas import HANDOFF, SESSION
from app.core.model.state import ID_LETTERS, StateEntry
from app.core.state import pruning
from app.core.state.merge import MergeResult, merge
from app.core.state.pruning import prune, state_of
from app.core.text.sameness import canonical, covers
from app.core.text.token_counts import estimate_text
from tests.corpus import assert_verdicts, corpus
from tests.profiles import examples
from tests.unit.talk import candidate, entry, item, message, talk
from tests.unit.timing import assert_linear_in

SPAN = talk("one", "two", "three", "four", start=20)  # seq 20 to 23


def merged(previous: Sequence[StateEntry], proposed: Candidate, *, next_entry: int = 50) -> MergeResult:
    return merge(SESSION, previous, proposed, SPAN, 7, next_entry)


def texts(result: MergeResult) -> list[str]:
    return [each.text for each in result.entries]


# --- the laws, one by one


@pytest.mark.case("9")
def test_an_entry_that_nobody_names_stays_byte_for_byte() -> None:
    earlier = [
        entry("F1", "  Port is 5433;\tNOT 5432 ", seqs=(3, 9), superseded=("Port is 5432",)),
        entry("N2", "Story."),
    ]
    result = merged(earlier, candidate(item("Uses Redis", 21)))
    assert list(result.entries[:1]) + list(result.entries[2:]) == earlier
    assert result.counts.kept == 2


def test_a_new_item_gets_the_next_id_and_its_provenance() -> None:
    result = merged([], candidate(item("Uses Redis", 22, 21), item("calm", 20, field="pathos")), next_entry=12)
    assert result.entries == (
        StateEntry(
            id="F12",
            field="logos",
            role="fact",
            text="Uses Redis",
            from_seqs=(21, 22),
            since_version=7,
            origins=("assistant", "user"),
        ),
        StateEntry(
            id="S13", field="pathos", role="style", text="calm", from_seqs=(20,), since_version=7, origins=("user",)
        ),
    )
    assert (result.counts.added, result.next_entry) == (2, 14)


def test_a_replaced_text_stands_in_its_successor_with_both_sources() -> None:
    earlier = [entry("F1", "Database: Postgres", seqs=(3,), superseded=("Database: SQLite",))]
    result = merged(earlier, candidate(item("Database: MySQL, no longer Postgres", 22, replaces=["F1"])))
    (only,) = result.entries
    assert (only.id, only.text, only.from_seqs) == ("F50", "Database: MySQL, no longer Postgres", (3, 22))
    assert only.superseded == ("Database: SQLite", "Database: Postgres")
    assert (result.counts.added, result.counts.superseded, result.counts.kept) == (1, 1, 0)


def test_what_is_dropped_although_nothing_speaks_against_it_stays_on_record() -> None:
    earlier = [entry("F1", "Likes tea"), entry("F2", "Lives in Riga"), entry("O3", "Send the offer", field="logos")]
    drops = (
        CandidateDrop(entry="F1", reason="no_longer_relevant", by_seq=21),
        CandidateDrop(entry="F2", reason="contradicted", by_seq=22),
    )
    result = merged(earlier, replace(candidate(item("Uses Redis", 21)), dropped=drops))
    assert [each.text for each in result.entries if each.id in {"F1", "F2"}] == []
    assert result.removed == (replace(earlier[0], pruned=True),)
    assert result.counts.dropped == 2


def test_what_a_model_replaces_or_sets_aside_stays_on_record_with_what_was_written_in_its_place() -> None:
    earlier = [entry("F1", "The budget is 900 francs"), entry("F2", "Has a cat"), entry("F3", "Waits for Bob")]
    proposed = candidate(
        item("The budget is 700 francs", 21, replaces=["F1"]),
        item("Flies to Porto", 22, replaces=["F1", "F2"]),
        dropped=[("F3", "resolved", 22)],
    )
    result = merge(SESSION, earlier, proposed, SPAN, 7, 50, by_model=True)
    assert result.removed == (replace(earlier[0], pruned=True, replaced_by=("F50", "F51")),)
    assert [(each.id, each.in_doubt, each.replaced_by) for each in result.entries] == [
        ("F2", True, ("F51",)),
        ("F3", True, ()),
        ("F50", False, ()),
        ("F51", False, ()),
    ]
    assert merged(earlier, candidate(item("The budget is 700 francs", 21, replaces=["F1"]))).removed == ()


@pytest.mark.parametrize(("unproven", "served"), [((), ["F50"]), (("F1",), ["F1", "F50"])])
def test_what_a_cut_item_no_longer_tells_is_set_aside(unproven: tuple[str, ...], served: list[str]) -> None:
    earlier = [entry("F1", "The budget is 900 francs")]
    cut = replace(item("The budget is in francs", 21, replaces=["F1"]), unproven=unproven)
    result = merge(SESSION, earlier, candidate(cut), SPAN, 7, 50, by_model=True)
    assert [one.id for one in result.entries] == served
    assert [one.in_doubt for one in result.entries if one.id == "F1"] == [True] * len(unproven)


def test_an_item_that_shortens_an_entry_does_not_fall_in_doubt_with_it() -> None:
    long, short = "Ivo is going to do it on his own before the audit", "Ivo is going to do it on his own"
    proposed = candidate(item(short, 20, replaces=["F1"]))
    first = merge(SESSION, [entry("F1", long)], proposed, SPAN, 7, 50, by_model=True)
    assert [(one.id, one.text, one.in_doubt, one.replaced_by) for one in first.entries] == [
        ("F1", long, True, ("F50",)),
        ("F50", short, False, ()),
    ]
    assert merge(SESSION, first.entries, proposed, SPAN, 8, 60, by_model=True).counts.added == 0


def test_an_entry_that_is_stated_more_fully_each_time_keeps_few_older_texts() -> None:
    told = "Ivo paints the house of Rosa"
    state: tuple[StateEntry, ...] = (entry("F1", told),)
    for version in range(7, 67):
        told += f" and wall{'abcdefgh'[version % 8] * (version // 8)}"
        state = merge(SESSION, state, candidate(item(told, 20)), SPAN, version, 50).entries
    assert (state[0].id, state[0].text) == ("F1", told)
    assert 20 <= len(state[0].superseded) <= 21


def test_several_entries_may_be_joined_in_one_and_one_split_in_several() -> None:
    earlier = [entry("F1", "Likes tea"), entry("F2", "Likes coffee", seqs=(2,))]
    joined = merged(earlier, candidate(item("Likes tea and coffee", 20, replaces=["F1", "F2"])))
    assert [(each.text, each.superseded) for each in joined.entries] == [
        ("Likes tea and coffee", ("Likes tea", "Likes coffee"))
    ]
    split = merged(
        joined.entries, candidate(*(item(text, 21, replaces=["F50"]) for text in ("Tea", "Coffee"))), next_entry=60
    )
    assert texts(split) == ["Tea", "Coffee"]
    assert all(each.superseded[-1] == "Likes tea and coffee" for each in split.entries)


def test_a_valid_drop_forgets_its_entry() -> None:
    result = merged(
        [entry("F1", "Waits for Bob"), entry("F2", "b")], candidate(narrative="x", dropped=[("F1", "resolved", 21)])
    )
    assert texts(result) == ["b", "x"]
    assert (result.counts.dropped, result.counts.restored_by_code) == (1, 0)


@pytest.mark.parametrize(
    "drop",
    [("F1", "boring", 21), ("F1", "", 21), ("F1", "resolved", None), ("F1", "resolved", 19), ("F1", "resolved", 24)],
)
def test_an_invalid_drop_is_undone_and_counted(drop: tuple[str, str, int | None]) -> None:
    result = merged([entry("F1", "Waits for Bob")], candidate(item("b", 20), dropped=[drop]))
    assert texts(result) == ["Waits for Bob", "b"]
    assert (result.counts.dropped, result.counts.restored_by_code, result.counts.kept) == (0, 1, 0)


def test_a_drop_or_replacement_of_an_unknown_entry_is_ignored() -> None:
    result = merged([], candidate(item("b", 20, replaces=["F9"]), dropped=[("F8", "resolved", 21)]))
    assert (texts(result), result.counts.dropped, result.counts.superseded) == (["b"], 0, 0)


def test_an_entry_of_another_role_that_is_replaced_waits_for_the_verifier() -> None:
    earlier = [entry("O1", "Lower the limit after 24 hours", field="next_steps")]
    done = item("The limit is 1Gi since 9 June", 20, field="progress", replaces=["O1"])
    result = merge(HANDOFF, earlier, candidate(done), SPAN, 7, 50, by_model=True)
    assert [(each.text, each.in_doubt, each.replaced_by) for each in result.entries] == [
        ("The limit is 1Gi since 9 June", False, ()),
        ("Lower the limit after 24 hours", True, ("F50",)),
    ]


def test_no_item_takes_the_place_of_a_narrative() -> None:
    proposed = candidate(item("They met.", 20, replaces=["N1"]))
    result = merge(SESSION, [entry("N1", "They met.")], proposed, SPAN, 7, 50, by_model=True)
    assert texts(result) == ["They met.", "They met."]


def test_the_narrative_is_replaced_by_a_new_one_and_stays_without() -> None:
    earlier = [entry("N1", "They met.")]
    assert merged(earlier, candidate(item("a", 20))).entries[-1] == earlier[0]
    told = merged(earlier, candidate(narrative="They met and agreed.")).entries
    assert [(each.id, each.text, each.superseded) for each in told] == [("N50", "They met and agreed.", ("They met.",))]


def test_the_narrative_cannot_be_dropped() -> None:
    result = merged([entry("N1", "They met.")], candidate(item("a", 20), dropped=[("N1", "resolved", 21)]))
    assert texts(result) == ["a", "They met."]
    assert result.counts.restored_by_code == 1


def test_what_the_candidate_states_again_stays_whatever_else_it_says() -> None:
    earlier = [entry("F1", "Uses Postgres 16")]
    proposed = candidate(
        item("uses postgres 16.", 21), item("Uses MySQL", 22, replaces=["F1"]), dropped=[("F1", "contradicted", 22)]
    )
    result = merged(earlier, proposed)
    assert [(each.id, each.text, each.from_seqs) for each in result.entries] == [
        ("F1", "Uses Postgres 16", (1, 21)),
        ("F50", "Uses MySQL", (22,)),
    ]
    assert (result.counts.kept, result.counts.dropped, result.counts.superseded) == (1, 0, 0)


def test_pruned_entries_take_no_part() -> None:
    gone = replace(entry("F1", "old"), pruned=True)
    result = merged([gone, entry("F2", "b")], candidate(item("c", 20, replaces=["F1"])))
    assert texts(result) == ["b", "c"]
    assert result.entries[1].superseded == ()


# --- doubles


def test_a_double_folds_into_the_earlier_entry_and_texts_that_only_look_alike_stay_two() -> None:
    def are_one(text: dict[str, str]) -> bool:
        one, other = text["one"], text["other"]
        result = merged([entry("F1", one, seqs=(4,))], candidate(item(other, 21)))
        if len(result.entries) == 2:
            assert canonical(one) != canonical(other)
            assert not covers(one, other)
            assert not covers(other, one)
            return False
        assert [(each.id, each.text, each.from_seqs) for each in result.entries] == [("F1", one, (4, 21))]
        assert (result.counts.added, result.counts.kept) == (0, 1)
        return True

    assert_verdicts(corpus("doubles"), are_one)


def test_of_two_texts_that_say_the_same_the_longer_is_kept_under_the_earlier_id() -> None:
    short, long = "Agents checkpoint to Redis pub/sub", "Agents checkpoint to Redis pub/sub for more durability"
    grown = merged([entry("F1", short, seqs=(2,))], candidate(item(long, 20)))
    assert [(each.id, each.text, each.superseded) for each in grown.entries] == [("F1", long, (short,))]
    assert (grown.counts.superseded, grown.counts.added, grown.entries[0].since_version) == (1, 0, 7)
    kept = merged([entry("F1", long, seqs=(2,))], candidate(item(short, 20)))
    assert [(each.id, each.text, each.from_seqs) for each in kept.entries] == [("F1", long, (2, 20))]
    both = merged([], candidate(item(short, 20), item(long, 21)))
    assert [(each.id, each.text, each.from_seqs) for each in both.entries] == [("F50", long, (20, 21))]


def test_a_chain_of_longer_and_longer_texts_folds_the_same_way_every_time() -> None:
    told = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()  # noqa: SIM905
    proposed = candidate(*(item(" ".join(told[:count]), 20) for count in (4, 6, 10)))
    once = merged([], proposed)
    assert [len(text.split()) for text in texts(once)] == [4, 10]
    assert texts(merged(once.entries, proposed, next_entry=once.next_entry)) == texts(once)


def test_a_power_is_another_number_than_its_digits() -> None:
    result = merged([entry("F1", "The tank holds 105 fish")], candidate(item("The tank holds 10⁵ fish", 20)))
    assert texts(result) == ["The tank holds 105 fish", "The tank holds 10⁵ fish"]


def test_doubles_are_folded_within_one_field_only() -> None:
    result = merged([entry("F1", "Knows async well")], candidate(item("Knows async well", 20, field="abstract")))
    assert [each.id for each in result.entries] == ["F1", "K50"]


# --- what a new text makes untrue, also when the model forgets to say so


def said(*contents: str, start: int = 20) -> tuple[Message, ...]:
    return talk(*contents, start=start)


def after(span: Sequence[Message], proposed: Candidate, *previous: StateEntry) -> MergeResult:
    return merge(SESSION, previous, proposed, span, 7, 50)


@pytest.mark.case("24")
@pytest.mark.parametrize(
    ("earlier", "span", "told"),
    [
        ("Database: Postgres", ("No, MySQL.", "OK."), "Database: MySQL"),
        ("The user wants to use Postgres", ("No, let's take MySQL.", "OK."), "The user chose MySQL"),
        ("Uses Postgres for storage", ("Actually we switched to MySQL.", "OK."), "Uses MySQL for storage"),
        ("The team uses Postgres", ("Forget it.", "OK."), "The team uses MySQL instead of Postgres"),
        ("Meeting place: Graz", ("Sorry, I meant Linz.", "OK."), "Meeting place: Linz"),
        ("User: Use Toggl", ("Actually, let's go with Clockify.", "OK."), "User: Use Clockify"),
        ("База данных: Postgres", ("Нет, лучше MySQL.", "Хорошо."), "База данных: MySQL"),
        ("Команда использует Postgres", ("Передумали.", "Хорошо."), "Команда перешла на MySQL вместо Postgres"),
        ("数据库:Postgres", ("不对,改用MySQL。", "好的。"), "数据库:MySQL"),
    ],
)
def test_a_correction_supersedes_what_it_corrects(earlier: str, span: tuple[str, ...], told: str) -> None:
    result = after(said(*span), candidate(item(told, 20)), entry("F1", earlier, seqs=(3,)))
    assert [(each.text, each.superseded, each.from_seqs) for each in result.entries] == [(told, (earlier,), (3, 20))]
    assert (result.counts.added, result.counts.superseded) == (1, 1)


def test_a_correction_finds_the_newest_of_many_entries_about_its_subject() -> None:
    earlier = [entry(f"F{number}", f"The meeting hall has room {number}", seqs=(3,)) for number in range(1, 70)]
    newest = entry("F70", "Meeting: Graz", seqs=(4,))
    result = after(said("Sorry, I meant Linz.", "OK."), candidate(item("Meeting: Linz", 20)), *earlier, newest)
    assert "Meeting: Graz" not in texts(result)


def test_within_one_candidate_too_the_correction_stands_alone() -> None:
    span = said("Use Postgres.", "OK.", "No, MySQL.", "OK.")
    result = after(span, candidate(item("Database: Postgres", 20), item("Database: MySQL", 22)))
    assert [(each.text, each.superseded, each.from_seqs) for each in result.entries] == [
        ("Database: MySQL", ("Database: Postgres",), (20, 22))
    ]


@pytest.mark.parametrize(
    ("earlier", "span", "told"),
    [
        ("Database: Postgres", ("We also need a cache.", "OK."), "Cache: Redis"),
        ("The team uses Postgres", ("Actually, let's use React.", "OK."), "The team uses React"),
        ("The team uses Postgres", ("Actually, let's also use MySQL.", "OK."), "The team uses MySQL"),
        (
            "The team uses Toggl for time tracking",
            ("Actually, let's use Figma for the mockups.", "OK."),
            "The team uses Figma for the mockups",
        ),
        (
            "Команда использует Toggl для учёта времени",
            ("Нет, для заметок возьмём Notion.", "Хорошо."),
            "Команда использует Notion для заметок",
        ),
        ("Database: Postgres", ("No, the logo should be blue.", "OK."), "The logo is blue"),
        ("Anna lives in Graz", ("No, Bob lives in Linz.", "OK."), "Bob has a dog in Linz"),
        ("The user speaks Russian", ("Actually I also speak French.", "OK."), "The user likes Paris"),
        ("Port is 5432", ("The metrics port is 9090.", "OK."), "Metrics port is 9090"),
        ("Allergic to nuts", ("I will not eat fish today.", "OK."), "Does not eat fish"),
    ],
)
def test_what_is_about_something_else_supersedes_nothing(earlier: str, span: tuple[str, ...], told: str) -> None:
    result = after(said(*span), candidate(item(told, 20)), entry("F1", earlier, seqs=(3,)))
    assert sorted(texts(result)) == sorted([earlier, told])


@pytest.mark.parametrize(
    ("earlier", "said_now", "told", "goes"),
    [
        (
            "Joanna: Mmm, that looks delicious!",
            "I changed my mind, switching opens doors.",
            "Switching opens doors",
            False,
        ),
        ("Joanna: Use Postgres for storage", "I changed my mind, MySQL for storage.", "Use MySQL for storage", True),
    ],
)
def test_the_name_of_who_speaks_is_nothing_that_two_texts_are_about(
    earlier: str, said_now: str, told: str, *, goes: bool
) -> None:
    span = said(f"Joanna: {said_now}", "Nate: Fine.")
    result = after(span, candidate(item(f"Joanna: {told}", 20)), entry("F1", earlier, seqs=(3,)))

    assert (result.counts.superseded, earlier in texts(result)) == (int(goes), not goes)


@pytest.mark.case("25")
@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ("Migration of the billing database is in progress", "The billing database migration is finished"),
        ("The user is working on the tax return", "The tax return is done"),
        ("Waiting for the parcel from Graz", "The parcel from Graz arrived"),
        ("The user plans to book the Lyon train", "The Lyon train is booked"),
        ("Переезд базы биллинга в процессе", "Переезд базы биллинга завершён"),
        ("Ждём поставку бетона", "Бетон доставлен"),
    ],
)
def test_under_way_and_done_do_not_stand_together(earlier: str, told: str) -> None:
    result = after(said("So.", "Yes."), candidate(item(told, 20)), entry("F1", earlier, seqs=(3,)))
    assert [(each.text, each.superseded) for each in result.entries] == [(told, (earlier,))]


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ("Migration of the billing database is in progress", "The audit of the website is finished"),
        ("The user is working on the tax return", "The tax return is not done yet"),
        ("The user plans to book the Lyon train", "The Porto hotel is booked"),
        ("The user lives in Graz", "The Graz report is finished"),
    ],
)
def test_another_task_that_is_done_completes_nothing(earlier: str, told: str) -> None:
    result = after(said("So.", "Yes."), candidate(item(told, 20)), entry("F1", earlier, seqs=(3,)))
    assert sorted(texts(result)) == sorted([earlier, told])


@pytest.mark.control("24")
def test_control_without_supersession_both_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.state.supersession._outdates", lambda *_, **__: False)
    result = after(said("No, MySQL.", "OK."), candidate(item("Database: MySQL", 20)), entry("F1", "Database: Postgres"))
    assert sorted(texts(result)) == ["Database: MySQL", "Database: Postgres"]


def test_every_entry_says_where_its_sources_came_from() -> None:
    span = (
        *talk("My order is A-7781.", "I see.", start=20),
        message(
            22,
            "A-7781: shipped",
            "tool",
            parts=[{"type": "tool_result", "tool_call_id": "c", "content": "A-7781: shipped"}],
        ),
    )
    earlier = replace(entry("F1", "Lives in Graz", seqs=(3,)), origins=("document",))
    proposed = candidate(item("Order A-7781 was shipped", 20, 22), item("Lives in Graz, likes it", 21, replaces=["F1"]))
    result = after(span, proposed, earlier)
    assert {each.text: each.origins for each in result.entries} == {
        "Order A-7781 was shipped": ("tool", "user"),
        "Lives in Graz, likes it": ("assistant", "document"),
    }


# --- order and shape


def test_entries_stand_by_field_then_by_age() -> None:
    earlier = [entry("K4", "k"), entry("F9", "f9"), entry("S2", "s"), entry("F3", "f3"), entry("N1", "n")]
    result = merged(earlier, candidate(item("f50", 20), item("s51", 20, field="pathos")))
    assert [each.id for each in result.entries] == ["F3", "F9", "F50", "S2", "S51", "K4", "N1"]


def test_the_state_has_exactly_the_shape_of_the_model() -> None:
    entries = [entry("F1", "a"), replace(entry("F2", "gone"), pruned=True), entry("N3", "Story.")]
    assert state_of(SESSION, entries) == {
        "logos": ["a"],
        "pathos": [],
        "abstract": [],
        "conversation_summary": "Story.",
    }
    assert state_of(SESSION, []) == {"logos": [], "pathos": [], "abstract": [], "conversation_summary": ""}
    with pytest.raises(KeyError):
        state_of(SESSION, [entry("F1", "a", "unknown_field")])


# --- properties

VOCABULARY = """user likes has no a Rex Bob 5 432 tea coffee Postgres MySQL since Friday not the budget""".split()  # noqa: SIM905
words = st.sampled_from(VOCABULARY)
CHAIN = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omega".split()  # noqa: SIM905
slices = st.tuples(st.integers(0, 4), st.integers(3, 12)).map(lambda cut: " ".join(CHAIN[cut[0] : cut[0] + cut[1]]))
phrases = st.lists(words, min_size=1, max_size=9).map(" ".join) | slices
LISTS = [(field.name, field.role) for field in SESSION.fields if field.is_list]


@st.composite
def states(draw: st.DrawFn) -> list[StateEntry]:
    numbers = draw(st.lists(st.integers(1, 40), unique=True, max_size=8))
    found = []
    for number in numbers:
        field, role = draw(st.sampled_from(LISTS))
        older = draw(st.lists(phrases, max_size=2, unique=True))
        found.append(entry(f"{ID_LETTERS[role]}{number}", draw(phrases), field, seqs=(number,), superseded=older))
    if draw(st.booleans()):
        found.append(entry("N41", draw(phrases)))
    return found


@st.composite
def proposals(draw: st.DrawFn, previous: list[StateEntry]) -> Candidate:
    ids = st.sampled_from([each.id for each in previous] + ["F999"])
    known_texts = [phrases, st.sampled_from([each.text for each in previous])] if previous else [phrases]
    items = st.builds(
        CandidateItem,
        field=st.sampled_from([name for name, _ in LISTS]),
        text=st.one_of(*known_texts),
        from_seqs=st.lists(st.integers(20, 23), max_size=2).map(tuple),
        replaces=st.lists(ids, max_size=3, unique=True).map(tuple),
    )
    drops = st.builds(
        CandidateDrop,
        entry=ids,
        reason=st.sampled_from(["contradicted", "resolved", "no_longer_relevant", "bored", ""]),
        by_seq=st.sampled_from([None, 3, 19, 20, 23, 24]),
    )
    narrative = draw(st.none() | phrases)
    return Candidate(
        items=tuple(draw(st.lists(items, max_size=7))),
        narrative={"conversation_summary": narrative} if narrative else {},
        dropped=tuple(draw(st.lists(drops, max_size=3))),
    )


@st.composite
def merges(draw: st.DrawFn) -> tuple[list[StateEntry], Candidate]:
    previous = draw(states())
    return previous, draw(proposals(previous))


@pytest.mark.case("9")
@examples(1.5)
@given(merges())
def test_no_entry_is_lost_silently(case: tuple[list[StateEntry], Candidate]) -> None:
    previous, proposed = case
    result = merged(previous, proposed)
    alive = {each.id: each for each in result.entries}
    superseded = {text for each in result.entries for text in each.superseded}
    sound = {
        drop.entry
        for drop in proposed.dropped
        if drop.reason in {"contradicted", "resolved", "no_longer_relevant"} and drop.by_seq in range(20, 24)
    }
    named = {id_ for each in proposed.items for id_ in each.replaces}
    for old in previous:
        stays = old.id in alive and alive[old.id].text == old.text
        assert stays or old.text in superseded or old.id in sound
        if old.role == "fact" and old.id not in named | sound and not proposed.items:
            assert alive[old.id] == old
        if old.id in alive:
            assert set(old.from_seqs) <= set(alive[old.id].from_seqs)
            assert set(old.superseded) <= set(alive[old.id].superseded)


@examples(1.5)
@given(merges())
def test_every_proposed_text_is_in_the_state_or_covered_there(case: tuple[list[StateEntry], Candidate]) -> None:
    previous, proposed = case
    result = merged(previous, proposed)
    for each in proposed.items:
        there = [found.text for found in result.entries if found.field == each.field]
        assert any(canonical(text) == canonical(each.text) or covers(text, each.text) for text in there)


@examples(2.5)
@given(merges())
@example(([], candidate(*(item(" ".join(CHAIN[:count]), 20) for count in (4, 6, 10)))))
def test_merging_the_same_candidate_again_adds_nothing(case: tuple[list[StateEntry], Candidate]) -> None:
    previous, proposed = case
    once = merged(previous, proposed)
    twice = merged(once.entries, proposed, next_entry=once.next_entry)
    assert [(each.id, each.text) for each in twice.entries] == [(each.id, each.text) for each in once.entries]
    assert (twice.counts.added, twice.counts.superseded, twice.counts.dropped) == (0, 0, 0)
    assert twice.next_entry == once.next_entry


@given(merges())
def test_ids_are_unique_fresh_and_in_order_and_the_counts_add_up(case: tuple[list[StateEntry], Candidate]) -> None:
    previous, proposed = case
    result = merged(previous, proposed)
    ids = [each.id for each in result.entries]
    new = sorted(int(id_[1:]) for id_ in set(ids) - {each.id for each in previous})
    assert len({id_[1:] for id_ in ids}) == len(ids)
    assert new == list(range(50, result.next_entry))
    assert len(new) == result.counts.added
    position = {field.name: index for index, field in enumerate(SESSION.fields)}
    assert [(position[each.field], int(each.id[1:])) for each in result.entries] == sorted(
        (position[each.field], int(each.id[1:])) for each in result.entries
    )
    counts = result.counts
    assert counts.kept + counts.superseded + counts.dropped + counts.restored_by_code == len(previous)


# --- pruning


def words_fit(limit: int) -> Callable[[dict[str, Any]], bool]:
    def fits(state: dict[str, Any]) -> bool:
        lists = [text for value in state.values() for text in ([value] if isinstance(value, str) else value)]
        return sum(len(text.split()) for text in lists) <= limit

    return fits


FULL = (
    *(entry(f"F{number}", f"fact number {number}") for number in range(1, 7)),
    *(
        entry(f"S{number}", f"{manner} manner today")
        for number, manner in enumerate(["dry", "warm", "loud", "soft"], start=10)
    ),
    *(entry(f"K{number}", f"{topic} known well") for number, topic in enumerate(["sql", "tls", "dns"], start=20)),
    entry("N30", "They planned a trip. Then they booked. Now they pack."),
)


def summary_fits(most: int) -> Callable[[dict[str, Any]], bool]:
    return lambda state: len(state["conversation_summary"]) <= most


def kept_ids(limit: int) -> list[str]:
    return [each.id for each in prune(SESSION, FULL, fits=words_fit(limit))[0]]


def test_a_state_that_fits_is_left_alone() -> None:
    assert prune(SESSION, FULL, fits=words_fit(49)) == (FULL, ())


def test_the_narrative_is_shortened_first_and_the_whole_of_it_stays_on_record() -> None:
    for room, told in ((48, "They planned a trip. Now they pack."), (45, "They planned a trip.")):
        kept, gone = prune(SESSION, FULL, fits=words_fit(room))
        assert gone == ()
        assert kept[-1].text == told
        assert kept[-1].superseded == ("They planned a trip. Then they booked. Now they pack.",)


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("One alone.", []),
        ("他们计划旅行。订了房间。现在收拾行李。", ["他们计划旅行。现在收拾行李。", "他们计划旅行。"]),
        (
            "First one. Second one.\n\nThird one!  Fourth one",
            ["First one. Third one!  Fourth one", "First one. Fourth one", "First one."],
        ),
    ],
)
def test_a_narrative_keeps_its_first_sentence_longest_and_then_its_last_ones(text: str, shorter: list[str]) -> None:
    seen: dict[str, None] = {}
    for most in range(len(text) + 1, -1, -1):
        kept, _ = prune(SESSION, [entry("N1", text)], fits=summary_fits(most))
        seen |= dict.fromkeys(one.text for one in kept)
    assert list(seen) == [text, *shorter]


def test_a_narrative_of_thousands_of_sentences_is_shortened_in_few_steps() -> None:
    told = entry("N1", " ".join(f"They came to harbour {number}." for number in range(3_000)))
    steps = list(pruning._steps_of_narrative(told))
    assert len(steps) <= pruning._MAX_NARRATIVE_STEPS + 1
    assert steps[-2].shorter is not None
    assert steps[-2].shorter.text == "They came to harbour 0. They came to harbour 2999."


def test_style_and_known_go_before_facts_the_oldest_first() -> None:
    assert kept_ids(40) == [each.id for each in FULL if each.id != "S10"]
    assert kept_ids(37) == [each.id for each in FULL if each.id not in {"S10", "S11"}]
    assert kept_ids(34) == [each.id for each in FULL if each.id not in {"S10", "S11", "K20"}]
    assert kept_ids(31) == [each.id for each in FULL if each.id not in {"S10", "S11", "K20", "F1"}]


def test_the_newest_of_every_field_is_spared_until_nothing_else_is_left() -> None:
    assert kept_ids(22) == ["F5", "F6", "S12", "S13", "K21", "K22", "N30"]
    assert kept_ids(10) == ["F5", "F6", "N30"]
    assert kept_ids(6) == ["F5", "F6"]
    assert kept_ids(3) == ["F6"]
    assert kept_ids(0) == []


def test_doubles_go_before_older_entries_that_say_something_of_their_own() -> None:
    manner = (
        entry("S1", "Loves sailing metaphors"),
        entry("S2", "Short plain answers preferred"),
        entry("S3", "Mood: calm"),
        entry("S4", "Prefers short plain answers"),
    )
    kept, gone = prune(SESSION, manner, fits=words_fit(9))
    assert [each.id for each in gone] == ["S2"]
    assert [each.id for each in kept] == ["S1", "S3", "S4"]


def test_open_entries_go_before_facts() -> None:
    fields = (entry("F1", "old fact", "logos"), entry("O2", "new task", "logos"), entry("O3", "x", "logos"))
    more = (
        entry("F4", "a b", "logos"),
        entry("F5", "c d", "logos"),
        entry("O6", "y", "logos"),
        entry("O7", "z", "logos"),
    )
    _, gone = prune(SESSION, (*fields, *more), fits=words_fit(8))
    assert [each.id for each in gone] == ["O2", "O3"]


@pytest.mark.parametrize("exact", ["鹿特丹仓库里有 2417 个托盘。", "We run PostgreSQL 16.4 there", "В порту 38 кранов"])
def test_a_fact_with_an_exact_value_goes_after_those_without(exact: str) -> None:
    plain = [entry(f"F{number}", f"Somebody likes {word} tea") for number, word in enumerate("abcdef", start=2)]
    kept, gone = prune(SESSION, [entry("F1", exact), *plain], fits=words_fit(18))
    assert exact in [each.text for each in kept]
    assert [each.id for each in gone][:2] == ["F2", "F3"]


def test_what_a_model_has_just_written_goes_after_all_that_was_there_before() -> None:
    older = [entry(f"F{number}", f"The exercise of day {number} came to 4{number} metres") for number in range(1, 8)]
    written = [
        replace(entry(f"F{number}", f"Session {number} is on day 2{number}"), since_version=4)
        for number in range(8, 13)
    ]
    bridge = replace(entry("N13", "It began well. It goes on well. It ends on Sunday."), since_version=4)
    everything = (*older, *written, bridge)
    kept, gone = prune(SESSION, everything, fits=words_fit(95), written_since=4)
    assert ([each.id for each in gone], bridge in kept) == (["F7"], True)
    few, _ = prune(SESSION, everything, fits=words_fit(25), written_since=4)
    assert {each.id for each in few if each.role == "fact"} <= {each.id for each in written}
    untold, _ = prune(SESSION, everything, fits=words_fit(95))
    lost, _ = prune(SESSION, everything, fits=words_fit(25))
    assert bridge not in untold, "control: nobody says what is new"
    assert {each.id for each in lost} & {each.id for each in older}


def test_a_rule_goes_after_facts_that_bind_nobody() -> None:
    texts = [
        "We must never store card numbers in the clear",
        *(f"Somebody likes tea number {word}" for word in "abcdef"),
    ]
    entries = [entry(f"F{number}", text) for number, text in enumerate(texts, start=1)]
    kept, gone = prune(SESSION, entries, fits=words_fit(25))
    assert entries[0] in kept
    assert [each.id for each in gone] == ["F2", "F3", "F4"][: len(gone)]
    assert gone


@pytest.mark.parametrize("changed", ["The hall is the small one", "The hall is number 7 in Hafenstrasse"])
def test_a_fact_that_took_the_place_of_another_goes_after_those_that_never_changed(changed: str) -> None:
    texts = [changed, *(f"Somebody paid {number} euros for it" for number in range(31, 41))]
    entries = [entry(f"F{number}", text) for number, text in enumerate(texts, start=7)]
    first = [entry(f"F{number}", f"Room {number} has {number} chairs") for number in range(1, 7)]
    since = [*first, replace(entries[0], superseded=("The hall is the large one",)), *entries[1:]]
    kept, gone = prune(SESSION, since, fits=words_fit(60))
    assert (entries[0].id in {each.id for each in kept}, bool(gone)) == (True, True)
    unchanged, _ = prune(SESSION, [*first, *entries], fits=words_fit(60))
    assert entries[0].id not in {each.id for each in unchanged}, "control: one that never changed goes by its age"


def test_what_is_pruned_is_marked_and_otherwise_unchanged() -> None:
    _, gone = prune(SESSION, FULL, fits=words_fit(31))
    assert gone == tuple(replace(each, pruned=True) for each in FULL if each.id in {"S10", "S11", "K20", "F1"})


@given(states(), st.integers(0, 60))
def test_a_pruned_state_fits_and_nothing_disappears(entries: list[StateEntry], limit: int) -> None:
    kept, gone = prune(SESSION, entries, fits=words_fit(limit))
    assert words_fit(limit)(state_of(SESSION, kept))
    assert sorted(each.id for each in (*kept, *gone)) == sorted(each.id for each in entries)
    assert all(each.pruned for each in gone)
    assert [each.id for each in kept] == [each.id for each in entries if each.id in {one.id for one in kept}]


@given(states(), st.integers(0, 60))
def test_no_more_is_given_up_than_needed(entries: list[StateEntry], limit: int) -> None:
    kept, gone = prune(SESSION, entries, fits=words_fit(limit))
    if gone:
        roomier = prune(SESSION, entries, fits=words_fit(limit + 9))[1]
        assert {each.id for each in roomier} <= {each.id for each in gone}
    if words_fit(limit)(state_of(SESSION, entries)):
        assert kept == tuple(entries)


def test_what_can_never_fit_leaves_nothing() -> None:
    kept, gone = prune(SESSION, FULL, fits=lambda _: False)
    assert (kept, len(gone)) == ((), len(FULL))


def test_pruning_a_large_state_asks_few_questions() -> None:
    entries = [entry(f"F{number}", f"fact {number} about topic {number % 7}") for number in range(1, 2_001)]
    asked = 0

    def fits(state: dict[str, Any]) -> bool:
        nonlocal asked
        asked += 1
        return estimate_text(" ".join(state["logos"])) <= 800

    kept, _ = prune(SESSION, entries, fits=fits)
    assert 20 < len(kept) < 400
    assert asked <= 14


@pytest.mark.long
def test_merging_a_large_candidate_takes_linear_time() -> None:
    def merging(size: int) -> Callable[[], object]:
        earlier = [
            entry(f"F{number}", f"Fact {number} about the city of number {number * 7}") for number in range(size)
        ]
        proposed = candidate(*(item(f"Detail {n} about the street of number {n * 3}", 20) for n in range(size)))

        def merge_them() -> None:
            assert merged(earlier, proposed, next_entry=1_000).counts.added == size

        return merge_them

    assert_linear_in(merging, 360)
