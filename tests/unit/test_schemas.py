"""Every schema: what it declares, where the offline model puts what, and that one without lists loses nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import FoldRequest
from app.core.model.schemas import HANDOFF, RESEARCH, SCHEMAS, SESSION, SUMMARY
from app.core.model.state import ID_LETTERS, StateEntry, StateField, StateSchema
from app.core.reading.cues import Cue
from app.core.reading.passages import passages_of
from app.core.state import apply as applying
from app.core.state.merge import merge
from app.core.state.pruning import prune, state_of
from app.core.state.restored_sentences import forgotten_statements, with_quotes
from app.core.summarizer.candidate import parse_candidate
from app.core.summarizer.offline import extractive, narrative_states
from app.core.summarizer.offline.extractive import compress
from app.core.summarizer.offline.kinds import HYPOTHESIS, OBJECTIVE, OBSTACLE, PATH, QUESTION, objective
from app.core.summarizer.offline.narrative_states import is_narrative_only, narrative_as_entries, statements
from app.core.text.language import detect
from app.core.text.sentences import closed
from app.core.text.token_counts import estimate_text
from app.core.validation.gate import judge
from bench.replay import Replay
from tests.acceptance.talk import lines
from tests.corpus import assert_values, corpus
from tests.profiles import examples
from tests.unit.talk import message, talk
from tests.unit.test_extractive import CHATTER, GERMAN, PROJECT, RUSSIAN
from tests.unit.test_extractive import talk as rows

EVERY = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
KINDS = {*get_args(Cue), OBJECTIVE, PATH, HYPOTHESIS, OBSTACLE, QUESTION}
PROMISE = "The contract number is NW-2026-118, it costs 48 500 euros and it starts on 3 May 2027."


@EVERY
def test_a_schema_names_each_field_of_its_model_once(schema: StateSchema) -> None:
    assert [field.name for field in schema.fields] == list(schema.model.model_fields)
    empty = schema.model().model_dump()
    assert empty == {field.name: [] if field.is_list else "" for field in schema.fields}
    assert schema.model.model_config["extra"] == "forbid"
    assert schema.use
    assert all(field.ask for field in schema.fields)


@EVERY
def test_what_a_field_takes_is_a_kind_that_there_is(schema: StateSchema) -> None:
    assert {kind for field in schema.fields for kind in field.takes} <= KINDS


@EVERY
@pytest.mark.parametrize("role", ID_LETTERS)
def test_every_role_has_a_home_that_asks_for_no_kind_if_there_is_one(schema: StateSchema, role: str) -> None:
    home = schema.field_for(role)  # type: ignore[arg-type]
    fitting = [field for field in schema.fields if field.role == role]
    assert home in (fitting or schema.fields)
    assert not home.takes or all(field.takes for field in fitting)


def state(schema: StateSchema, text: str, *, target: int = 800, previous: Sequence[StateEntry] = ()) -> dict[str, Any]:
    request = SummaryRequest(schema=schema, messages=rows(text), target_tokens=target, previous=tuple(previous))
    made: dict[str, Any] = json.loads(compress(request))
    return made


def texts(items: Any) -> str:
    return "\n".join(item["text"] for item in items)


WORK = f"""
U I want to move the login of our shop to single sign-on. You must not touch the payment code.
A I looked at it first. {CHATTER}
U We decided on Keycloak 24, because our hosting partner runs it already.
A I have edited src/login/session.py: tokens are stored for 12 hours now. {CHATTER}
U I suspect that the redirect fails because of the old cookie domain shop.example.org.
A I will write the tests for the redirect by 14 March 2026. {CHATTER}
U The error was LOGIN-4711 in production yesterday at 14:30.
A Noted. {CHATTER}
U Which browsers do we have to support?
"""


def test_a_statement_goes_where_its_kind_is_asked_for() -> None:
    made = state(HANDOFF, WORK)
    assert "single sign-on" in texts(made["goal"])
    assert "must not touch the payment code" in texts(made["goal"])
    assert "Keycloak 24" in texts(made["key_decisions"])
    assert "src/login/session.py" in texts(made["files_changed"])
    assert "LOGIN-4711" in texts(made["progress"])
    assert "14 March 2026" in texts(made["next_steps"])
    assert "Which browsers" in texts(made["next_steps"])
    assert made["blockers"] == []
    stuck = state(
        HANDOFF, f"{WORK.rstrip()}\nA I don't know.\nU We are still blocked: ticket VND-9911 at the vendor.\nA Hm."
    )
    assert "VND-9911" in texts(stuck["blockers"])
    assert made["current_state"]


def test_research_parts_findings_from_what_is_supposed() -> None:
    made = state(RESEARCH, WORK)
    assert "cookie domain" in texts(made["hypotheses"])
    assert "cookie domain" not in texts(made["findings"])
    assert "LOGIN-4711" in texts(made["findings"])
    assert "14 March 2026" in texts(made["next_actions"])
    assert "Which browsers" in texts(made["open_questions"])


@pytest.mark.parametrize("name", ["handoff", "research", "session"])
def test_no_statement_stands_in_two_fields(name: str) -> None:
    schema = SCHEMAS[name]
    made = state(schema, WORK)
    told = [item["text"] for field in schema.fields if field.is_list for item in made[field.name]]
    assert len(told) == len(set(told)) > 5


def test_a_kind_that_no_field_takes_goes_to_its_roles_home() -> None:
    class Shape(BaseModel):
        rules: list[str] = []
        facts: list[str] = []

    fields = (
        StateField(name="rules", role="fact", ask="x", takes=frozenset({"decision"})),
        StateField(name="facts", role="fact", ask="decision, decided"),
    )
    made = state(StateSchema(name="other", model=Shape, use="", fields=fields), WORK)
    assert "Keycloak" in texts(made["rules"])
    assert "LOGIN-4711" in texts(made["facts"])
    assert "Which browsers" in texts(made["facts"]), "what is open has no field of its own here"
    without = (replace(fields[0], takes=frozenset()), fields[1])
    control = state(StateSchema(name="other", model=Shape, use="", fields=without), WORK)
    assert control["facts"] == [], "by role alone the first field would take it all; its words decide nothing"


def test_what_a_conversation_is_for_is_told_however_little_it_says() -> None:
    def told(text: str) -> list[str]:
        found = objective(passages_of(rows(text), detect(text) or "en"))
        assert found is not None
        return [found.text, texts(state(HANDOFF, text)["goal"]), state(SUMMARY, text)["summary"]]

    assert_values(corpus("objectives"), told, agrees=lambda answers, aim: all(aim in answer for answer in answers))


def test_the_objective_is_that_of_the_first_request_only() -> None:
    first = state(HANDOFF, WORK)["goal"]
    goal = StateEntry(id="F1", field="goal", role="fact", text=first[0]["text"], from_seqs=(1,), since_version=1)
    later = "U I want to know the time in Lisbon.\nA It is noon.\nU The code of the door is 55-12-AX.\nA Noted."
    assert texts(state(HANDOFF, later, previous=[goal])["goal"]) == ""
    assert "Lisbon" in texts(state(HANDOFF, later)["goal"]), "control: as a first request it is the goal"


def test_the_objective_is_never_given_up_for_something_else() -> None:
    goal = StateEntry(
        id="F1", field="goal", role="fact", text="User: I want to move the shop.", from_seqs=(1,), since_version=1
    )
    other = [
        StateEntry(id=f"F{n}", field="progress", role="fact", text=f"User: Box {n} weighs {n * 7} kg.", since_version=1)
        for n in range(2, 60)
    ]
    made = state(HANDOFF, PROJECT, target=400, previous=[goal, *other])
    dropped = {gone["entry"] for gone in made["dropped"]}
    assert dropped, "control: there is no room for all"
    assert "F1" not in dropped


# --- a state that is one text -------------------------------------------------------------------------------------


def test_a_summary_is_a_text_with_the_facts_in_the_talks_language() -> None:
    for text, kept in (
        (PROJECT, ("Dana", "€18,000", "7 days", "June 21st", "ORD-20944", "MB WAY")),
        (RUSSIAN, ("Марина", "sales@volga-tea.ru", "9:00", "250 тысяч рублей")),
        (GERMAN, ("Jonas", "80 Gäste", "22.000 Euro", "Freiburg")),
    ):
        made = state(SUMMARY, text)
        assert set(made) == {"summary", "dropped"}
        assert all(value in made["summary"] for value in kept), made["summary"]
        assert detect(made["summary"]) == detect(text)


@EVERY
@pytest.mark.parametrize("target", [50, 300, 800])
def test_talk_about_nothing_is_told_too(schema: StateSchema, target: int) -> None:
    made = state(schema, f"U {CHATTER}\nA {CHATTER}\nU {CHATTER}", target=target)
    assert any(made[field.name] for field in schema.fields)


def test_what_was_settled_or_corrected_is_not_told_on() -> None:
    before = "About tickets. User: Let's use Postgres for the ticket page. User: My budget is $5,000."
    told = StateEntry(id="N1", field="summary", role="narrative", text=before, since_version=1)
    now = f"U No. We switch the ticket page from Postgres to MySQL 8.4.\nA Changed. {CHATTER}"
    made = state(SUMMARY, now, previous=[told])["summary"]
    assert "Let's use Postgres" not in made
    assert "MySQL 8.4" in made
    assert "$5,000" in made
    assert state(SUMMARY, now, previous=[told])["dropped"] == [], "ids of statements are nobody else's"


def test_what_was_told_earlier_is_carried_on_in_its_place_in_time() -> None:
    """Without a model its sentences are treated like all other statements, without the words that mark them."""
    now = StateEntry(
        id="N1", field="summary", role="narrative", text="About tickets. User: It costs $700.", since_version=1
    )
    earlier = replace(now, id="N2", text="User: It was to cost $5,000. User: The code is AB-4711.", in_doubt=True)
    found = narrative_as_entries([now, earlier], SUMMARY, "en")
    assert [one.text for one in found if one.role == "fact"] == [
        "User: It was to cost $5,000.",
        "User: The code is AB-4711.",
        "User: It costs $700.",
    ]
    assert [one.text for one in found if one.role == "narrative"] == ["About tickets."]


@pytest.mark.parametrize("target", [150, 300, 800, 2_000])
def test_a_summary_has_the_size_that_was_asked_for(target: int) -> None:
    made = state(SUMMARY, (PROJECT + RUSSIAN).replace("\n\n", "\n"), target=target)["summary"]
    assert 20 < estimate_text(made) <= target
    previous = [StateEntry(id="N1", field="summary", role="narrative", text=made, since_version=1)]
    again = state(SUMMARY, WORK, target=target, previous=previous)["summary"]
    assert estimate_text(again) <= 1.5 * target


def compacted(times: int, window: int = 20_000) -> tuple[Replay, list[str]]:
    """Fold a talk this many times, whole, and return it with the text after each fold."""
    replay, told = Replay.in_window(window, "turn_end", state_share=0.05), list[str]()
    for number in range(times):
        replay.say("user", "I want to find a boat for our club in Kiel. " + PROMISE if number == 0 else _news(number))
        for step in range(6):
            replay.say("assistant", f"Noted. {CHATTER}")
            replay.say(
                "user", f"Step {step} of part {number}: pier {number}-{step} opens at {8 + step}:15. {CHATTER[:300]}"
            )
        assert replay.fold(replay.policy.triggers[0].request()), replay.refused
        told.append(" ".join(entry.text for entry in replay.entries if not entry.pruned))
    return replay, told


def _news(number: int) -> str:
    return (
        f"The invoice INV-{number}-77 of {number * 110} euros came from Hanna Voss, who lives in Ulm. {CHATTER[:200]}"
    )


@pytest.mark.long
def test_after_ten_compactions_the_first_turns_facts_are_there() -> None:
    replay, told = compacted(10)
    assert (replay.compactions, replay.refused) == (10, [])
    for text in told:
        assert all(value in text for value in ("NW-2026-118", "48 500 euros", "3 May 2027", "boat for our club"))
    assert "INV-9-77" in told[-1]
    assert max(map(estimate_text, told)) <= replay.budgets.state_cap
    assert len([entry for entry in replay.entries if not entry.pruned]) == 1


def test_without_carrying_on_they_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a model that tells only its span, without the code that brings back what it forgot."""
    monkeypatch.setattr(extractive, "narrative_as_entries", lambda entries, schema, language: ())
    monkeypatch.setattr(applying, "forgotten_statements", lambda *args, **named: [])
    _, told = compacted(3)
    assert "NW-2026-118" in told[0]
    assert "NW-2026-118" not in told[-1]


def test_what_a_model_forgets_of_its_own_summary_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractive, "narrative_as_entries", lambda entries, schema, language: ())
    _, told = compacted(3)
    assert all("NW-2026-118" in text for text in told)


def told(text: str, version: int = 1) -> StateEntry:
    return StateEntry(id=f"N{version}", field="summary", role="narrative", text=text, since_version=version)


def test_only_what_is_told_in_no_other_way_has_been_forgotten() -> None:
    before = [told("They plan a launch. The launch is on 4 July 2026. The key is AB-4711-77. They like tea.")]
    after = [told("They plan a launch. The launch is on 11 July 2026.", 2)]
    assert forgotten_statements(SUMMARY, before, after, max_tokens=200) == [(0, "The key is AB-4711-77.")]
    assert forgotten_statements(SUMMARY, before, after, max_tokens=3) == []
    assert forgotten_statements(SESSION, [replace(before[0], field="conversation_summary")], [], max_tokens=200) == []


PLAN = "On 8 August at 18:00 to Artur in Togliatti, 390 km; then two nights at the lake."
PHONE = "The landlady's phone is 555-04-18."


def test_a_plan_that_the_new_text_changes_in_several_sentences_does_not_come_back() -> None:
    before = [told(f"A family plans a journey. {PLAN} {PHONE}")]
    changed = "Artur in Togliatti works on 8 August. They visit him on the 17th, after the nights at the lake."
    assert forgotten_statements(SUMMARY, before, [told(changed, 2)], max_tokens=200) == [(0, PHONE)]


def test_control_a_plan_that_the_new_text_does_not_speak_of_comes_back() -> None:
    before = [told(f"A family plans a journey. {PLAN} {PHONE}")]
    assert forgotten_statements(SUMMARY, before, [told("The car was repaired.", 2)], max_tokens=200) == [
        (0, PLAN),
        (0, PHONE),
    ]


def test_an_identifier_comes_back_though_the_new_text_has_most_of_the_words_beside_it() -> None:
    before = [told("The journey begins soon. The parcel for the landlady has the code AB-4711-77.")]
    after = [told("The landlady was out. The parcel came back. They know the code of the door.", 2)]
    assert forgotten_statements(SUMMARY, before, after, max_tokens=200) == [
        (0, "The parcel for the landlady has the code AB-4711-77.")
    ]


def test_of_what_was_forgotten_the_newest_comes_back_first() -> None:
    before = [told(f"{PLAN} {PHONE}")]
    assert forgotten_statements(SUMMARY, before, [told("The car was repaired.", 2)], max_tokens=20) == [(0, PHONE)]


def test_after_a_label_of_the_text_only_the_sentence_with_the_value_comes_back() -> None:
    before = [told("Plan: They leave early. The key is AB-4711-77. They like tea.")]
    assert forgotten_statements(SUMMARY, before, [told("The car was repaired.", 2)], max_tokens=200) == [
        (0, "The key is AB-4711-77.")
    ]


def test_quotes_stand_in_the_text_where_there_is_no_list() -> None:
    span = talk("The parcel is JD-0146-77", "Noted.", start=3)
    quotes = [(0, "The key is AB-4711-77."), (3, "The parcel is JD-0146-77")]
    (entry,) = with_quotes(SUMMARY, [told("They talk. They laugh.", 2)], quotes, span, version=2, next_entry=9)
    assert entry.text == "They talk. The key is AB-4711-77. They laugh. The parcel is JD-0146-77."
    assert entry.superseded == ()
    (kept,) = with_quotes(SUMMARY, [told("They talk.", 1)], quotes[1:], span, version=2, next_entry=9)
    assert (kept.since_version, kept.superseded) == (2, ("They talk.",)), "a text of an earlier version has changed"
    made = with_quotes(HANDOFF, (), quotes[1:], span, version=2, next_entry=9)
    assert [one.field for one in made] == ["progress"], "values that code brings back are no goals"


def test_a_text_that_is_too_long_loses_its_weakest_statements_first() -> None:
    filler = [
        f"Assistant: It was talked about this and that on day {word}." for word in ("one", "two", "three", "four")
    ]
    text = " ".join([
        "About boats.", filler[0], "User: The contract NW-2026-118 costs 48 500 euros.", *filler[1:],
        "Assistant: I will call Kiel.",
    ])  # fmt: skip
    limit = estimate_text(text) - 30
    kept, gone = prune(SUMMARY, [told(text)], fits=lambda made: estimate_text(made["summary"]) <= limit)
    assert gone == ()
    assert "NW-2026-118" in kept[0].text
    assert kept[0].text.startswith("About boats.")
    assert kept[0].text.endswith("I will call Kiel.")
    assert kept[0].superseded == (text,), "the whole of it stays on record"
    bridge = replace(told(text), field="conversation_summary")
    (short,), _ = prune(SESSION, [bridge], fits=lambda made: estimate_text(made["conversation_summary"]) <= limit)
    assert "NW-2026-118" not in short.text, "control: a mere bridge loses what stands in its middle"
    assert short.text.startswith("About boats. Assistant: It was talked")


def test_the_goal_outlives_facts_with_values_when_room_runs_out() -> None:
    entries = [
        StateEntry(id="F1", field="goal", role="fact", text="User: I want to move the shop.", since_version=1),
        *(
            StateEntry(
                id=f"F{n}", field="progress", role="fact", text=f"User: Box {n} costs {n} euros.", since_version=1
            )
            for n in range(2, 40)
        ),
    ]
    kept, gone = prune(HANDOFF, entries, fits=lambda made: estimate_text(json.dumps(made)) <= 150)
    assert gone
    assert "F1" in {entry.id for entry in kept}


SENTENCES = st.lists(
    st.sampled_from(
        [
            *PROJECT.replace("\nU", "\n").replace("\nA", "\n").split(". "),
            *RUSSIAN.split(". ")[:6],
            "On Jan. 5th at 5 p.m.",
        ]
    ),
    min_size=1,
    max_size=8,
)


@given(SENTENCES)
def test_statements_hold_every_word_of_the_text_once_in_order(parts: list[str]) -> None:
    text = " ".join(" ".join(parts).split())
    found = statements(text)
    assert len(set(found)) == len(found)
    left = iter(text.split())
    assert all(word in left for one in found for word in one.split())
    missing = set(text.split()) - {word for one in found for word in one.split()}
    assert not missing


@examples(0.4)
@given(
    st.lists(
        st.sampled_from([line[2:] for line in (PROJECT + RUSSIAN + GERMAN + WORK).splitlines() if line])
        | st.text(max_size=80),
        min_size=2,
        max_size=14,
    ),
    st.sampled_from(sorted(SCHEMAS)),
)
def test_the_offline_model_is_never_refused_for_its_shape_in_any_schema(lines: list[str], name: str) -> None:
    schema, span = SCHEMAS[name], talk(*lines)
    request = SummaryRequest(schema=schema, messages=span, target_tokens=800)
    text = compress(request)
    assert set(json.loads(text)) == {*(field.name for field in schema.fields), "dropped"}
    report = judge(Proposal(text=text, finish="stop", model="offline"), request)
    assert report.reason in {None, "empty_summary", "skeleton", "not_a_summary", "wrong_language"}
    if report.candidate:
        merged = merge(schema, (), report.candidate, span, 1, 1)
        assert schema.model.model_validate(state_of(schema, merged.entries))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
@pytest.mark.parametrize("text", [PROJECT, RUSSIAN, GERMAN, WORK])
def test_what_it_says_of_an_honest_talk_is_accepted(name: str, text: str) -> None:
    request = SummaryRequest(schema=SCHEMAS[name], messages=rows(text), target_tokens=800)
    report = judge(Proposal(text=compress(request), finish="stop", model="offline"), request)
    assert report.candidate is not None, report.reason


def test_a_summary_that_tells_nothing_is_refused() -> None:
    request = SummaryRequest(schema=SUMMARY, messages=rows(PROJECT), target_tokens=800)

    def reason(said: str) -> str | None:
        answer = Proposal(text=json.dumps({"summary": said, "dropped": []}), finish="stop", model="m")
        return judge(answer, request).reason

    assert_values(corpus("summaries"), reason)


def test_only_one_schema_has_no_list_for_facts() -> None:
    assert [schema.name for schema in SCHEMAS.values() if is_narrative_only(schema)] == ["summary"]
    assert parse_candidate('{"summary": "Dana is in Porto.", "dropped": []}', SUMMARY).narrative
    assert closed("no end") == "no end."
    assert message(1, "x").seq == 1


def test_one_text_says_each_thing_once_and_what_was_last_at_its_end() -> None:
    story = "About a trip. Last (User): We leave on 3 May."
    told = narrative_states.joined_narrative(
        story, ["User: The hut is red.", "User: The hut is red. It costs $40.", "User: Bring a map"]
    )
    assert told == "About a trip. User: The hut is red. It costs $40. User: Bring a map. User: We leave on 3 May."


@pytest.mark.long
def test_one_text_told_anew_stays_near_its_tenth_of_the_window_however_often() -> None:
    """This includes the quotes of exact values that code adds."""
    replay, said = Replay.in_window(4_000, "turn_end"), 1
    for _ in range(3):
        while replay.breakdown().total < 3_600:
            for role, text in lines(10, start=said):
                replay.say("user" if role == "user" else "assistant", text)
            said += 10
        replay.fold(FoldRequest(fold="all"))
        assert 200 < replay.breakdown().state <= 400
    assert replay.refused == []
