from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.candidate import CandidateDrop, CandidateItem
from app.core.model.schemas import SESSION
from app.core.summarizer.candidate import CandidateError, attribute_sources, candidate_json_schema, parse_candidate
from tests.corpus import assert_values, corpus
from tests.unit.talk import answer, candidate, entry, fact, item, message, talk
from tests.unit.timing import assert_linear


def refused(text: str) -> str:
    with pytest.raises(CandidateError) as caught:
        parse_candidate(text, SESSION)
    return caught.value.reason


def read_or_refused(text: str) -> list[str] | str:
    try:
        return parse_candidate(text, SESSION).texts()
    except CandidateError as error:
        return error.reason


def logos(text: str) -> list[tuple[str, tuple[int, ...], tuple[str, ...]]]:
    return [(each.text, each.from_seqs, each.replaces) for each in parse_candidate(text, SESSION).items]


# --- the shape that is asked for


def walk(schema: Any) -> list[dict[str, Any]]:
    inner = list(schema.values()) if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    here = [schema] if isinstance(schema, dict) else []
    return here + [found for value in inner for found in walk(value)]


def test_the_json_schema_asks_for_every_field_and_nothing_else() -> None:
    schema = candidate_json_schema(SESSION)
    fields = ["logos", "pathos", "abstract", "conversation_summary", "dropped", "anchors"]
    assert schema["required"] == fields == list(schema["properties"])
    objects = [each for each in walk(schema) if each.get("type") == "object"]
    assert len(objects) == 4
    assert all(each["required"] == list(each["properties"]) for each in objects)


def test_the_json_schema_uses_only_words_that_constrained_decoding_knows() -> None:
    schema = candidate_json_schema(SESSION)
    assert not {"anyOf", "default", "title"} & {key for each in walk(schema) for key in each}
    assert schema["properties"]["dropped"]["items"]["properties"]["reason"]["enum"] == [
        "contradicted",
        "resolved",
        "no_longer_relevant",
    ]
    assert schema["properties"]["anchors"]["items"]["properties"]["type"]["enum"] == [
        "commitment",
        "decision",
        "unresolved_question",
        "critical_fact",
        "correction",
    ]
    assert json.loads(json.dumps(schema)) == schema


# --- what is read


def test_a_full_answer_is_read_whole() -> None:
    read = parse_candidate(
        answer(
            "They plan a trip.",
            [fact("Budget is 5 000 €", 3, 4, replaces=["F1"])],
            [fact("Cheerful", 3)],
            [fact("Knows trains", 4)],
            [{"entry": "F2", "reason": "contradicted", "by_seq": 4}],
        ),
        SESSION,
    )
    assert read.items == (
        CandidateItem(field="logos", text="Budget is 5 000 €", from_seqs=(3, 4), replaces=("F1",)),
        CandidateItem(field="pathos", text="Cheerful", from_seqs=(3,)),
        CandidateItem(field="abstract", text="Knows trains", from_seqs=(4,)),
    )
    assert read.narrative == {"conversation_summary": "They plan a trip."}
    assert read.dropped == (CandidateDrop(entry="F2", reason="contradicted", by_seq=4),)


def test_wrapping_is_forgiven() -> None:
    state = answer("s", [fact("Uses ``` and {braces}", 1)])
    assert_values(corpus("candidate_wrappings"), lambda wrap: logos(wrap.replace("{}", state)))


@pytest.mark.parametrize("tag", ["think", "thinking", "thought", "reasoning"])
def test_an_item_may_tell_of_the_tags_that_thoughts_have(tag: str) -> None:
    said = f"The parser cuts what follows <{tag}> in an answer"
    told = answer("s", [fact(said, 1)])
    for text in (told, f"```json\n{told}\n```", f"<{tag}>a draft: {{}}</{tag}>\n{answer('s', [fact('Rests', 1)])}"):
        assert logos(text) == [(said if said in text else "Rests", (1,), ())]


def test_what_stands_beside_the_record_is_passed_over() -> None:
    draft, record = answer("s", [fact("A draft", 1)]), answer("s", [fact("Rests", 1)])
    for text in (
        f"First {{a}} and {draft} come to mind.\n</think>\n\n{record}",
        f"Here it is:\n{record}\nSay {{more}} if it is too short.",
        f"{draft}\n\nBetter:\n{record}",
        f"<|channel|>analysis<|message|>A {{plan}}.<|end|><|channel|>final<|message|>{record}",
    ):
        assert logos(text) == [("Rests", (1,), ())], text
    assert refused(f"{draft}\n\nBetter:\n{record[:-9]}") == "unparseable", "a draft is no answer"


def test_numbers_in_one_text_are_all_read() -> None:
    told = {"text": "Rests", "from": "3, 4", "replaces": "F1, F2"}
    assert logos(json.dumps({"logos": [told], "conversation_summary": "s"})) == [("Rests", (3, 4), ("F1", "F2"))]


@pytest.mark.parametrize("outer", [lambda inner: {"state": inner}, lambda inner: [inner], lambda inner: [{"a": inner}]])
def test_an_object_that_holds_only_the_state_is_forgiven(outer: Any) -> None:
    assert logos(json.dumps(outer(json.loads(answer("s", ["a fact"]))))) == [("a fact", (), ())]


def test_items_are_read_with_patience() -> None:
    def read(given_items: Any) -> list[tuple[str, tuple[int, ...], tuple[str, ...]]]:
        return logos(json.dumps({"logos": given_items, "conversation_summary": "s"}))

    assert_values(corpus("candidate_items"), read)


def test_the_narrative_may_come_in_other_clothes() -> None:
    def read(summary: Any) -> str:
        narrative = parse_candidate(answer(summary, ["x"]), SESSION).narrative
        assert list(narrative) == ["conversation_summary"]
        return narrative["conversation_summary"]

    assert_values(corpus("candidate_narratives"), read)


def test_a_missing_field_counts_as_empty_and_unknown_keys_are_ignored() -> None:
    read = parse_candidate('{"conversation_summary": "s", "mood": [[[{"a": NaN}]]], "logos": []}', SESSION)
    assert (read.items, read.narrative) == ((), {"conversation_summary": "s"})


def test_drops_are_read_as_they_are_and_judged_later() -> None:
    def read(drop: Any) -> list[tuple[str, str, int | None]]:
        text = json.dumps({"conversation_summary": "s", "dropped": [drop]})
        return [(each.entry, each.reason, each.by_seq) for each in parse_candidate(text, SESSION).dropped]

    assert_values(corpus("candidate_drops"), read)


def proposed(*anchors: Any) -> list[tuple[str, str, int]]:
    """The anchors that are read of these; a candidate that is good otherwise is never refused for them."""
    data = json.loads(answer("They met.", [fact("Lives in Basel", 1)])) | {"anchors": list(anchors)}
    read = parse_candidate(json.dumps(data), SESSION)
    assert [each.text for each in read.items] == ["Lives in Basel"]
    return [(each.type, each.quote, each.seq) for each in read.anchors]


GOOD = {"type": "decision", "quote": "We take MySQL.", "seq": 4}


def test_anchors_are_read_verbatim_and_what_cannot_be_read_is_left_out() -> None:
    def read(given_anchor: Any) -> list[tuple[str, str, int]]:
        alone, beside = proposed(given_anchor), proposed(given_anchor, GOOD)
        assert beside == list(dict.fromkeys([*alone, ("decision", "We take MySQL.", 4)]))
        return alone

    assert_values(corpus("candidate_anchors"), read)
    assert read({"type": "decision", "quote": "a" * 100_000, "seq": 1}) == []


@pytest.mark.parametrize("anchors", [None, "", "none", 0, True, {}, {"type": "decision"}, [[[]]]])
def test_anchors_of_any_other_shape_are_none(anchors: Any) -> None:
    data = json.loads(answer("They met.")) | {"anchors": anchors}
    assert parse_candidate(json.dumps(data), SESSION).anchors == ()


def test_an_answer_without_the_key_has_no_anchors() -> None:
    assert parse_candidate(answer("They met."), SESSION).anchors == ()


def test_a_flood_of_anchors_is_bounded_and_doubles_are_one() -> None:
    same = {"type": "decision", "quote": "We take MySQL.", "seq": 4}
    assert len(proposed(*[same] * 50)) == 1
    assert len(proposed(*({**same, "seq": seq} for seq in range(5_000)))) == 200


def test_an_overlong_item_is_cut_at_sentence_ends_and_loses_nothing() -> None:
    sentences = [f"Step {number} of the rollout moves service number {number} to Frankfurt." for number in range(60)]
    read = logos(answer("s", [fact(" ".join(sentences), 5, replaces=["F3"])]))
    assert len(read) > 1
    assert all(len(text) <= 1_000 and text.endswith(".") for text, _, _ in read)
    assert " ".join(text for text, _, _ in read) == " ".join(sentences)
    assert all((seqs, replaces) == ((5,), ("F3",)) for _, seqs, replaces in read)


def test_an_overlong_sentence_is_cut_at_blanks() -> None:
    words = " ".join(f"word{number}" for number in range(400))
    assert " ".join(text for text, _, _ in logos(answer("s", [words]))) == words
    assert "".join(text for text, _, _ in logos(answer("s", ["x" * 2_500]))) == "x" * 2_500


# --- what is refused


def test_what_is_no_summary_is_refused_with_its_reason() -> None:
    assert_values(corpus("candidates_refused"), refused)


def test_fields_without_any_text_are_an_empty_summary() -> None:
    assert refused(answer()) == "empty_summary"
    assert refused(answer("  ", ["", " "], [{"text": ""}])) == "empty_summary"
    assert refused(answer(dropped=[{"entry": "F1", "reason": "resolved", "by_seq": 1}])) == "empty_summary"


@pytest.mark.parametrize("mark", ["-", "—", "…", "...", "–, –", "•"])
def test_a_text_of_punctuation_alone_is_none(mark: str) -> None:
    assert refused(answer(mark, [mark], [{"text": mark}])) == "empty_summary"
    read = parse_candidate(answer(mark, [mark, "Anna owes 40 euros.", "👍"]), SESSION)
    assert ([item.text for item in read.items], dict(read.narrative)) == (["Anna owes 40 euros.", "👍"], {})


@pytest.mark.daily(4)
@pytest.mark.case("11")
@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"logos": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"conversation_summary": "s", "x": ' + "[" * 30 + "]" * 30 + "}",
        '{"logos": ["' + "a" * 500_000 + '"]}',
        '{"logos": [' + "9" * 20_000 + "]}",
        '"' * 300_000,
        '{"logos": ["' + '\\"' * 150_000,
        "<think>" * 50_000,
        "```" * 100_000,
    ],
)
def test_huge_and_deep_answers_are_refused_quickly(text: str) -> None:
    assert refused(text) in {"unparseable", "empty_summary"}
    assert_linear(read_or_refused, text)


def test_thousands_of_items_are_bounded() -> None:
    assert len(parse_candidate(answer("s", [f"fact {number}" for number in range(3_000)]), SESSION).items) == 1_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "logos": json_values,
            "pathos": st.lists(json_values | st.fixed_dictionaries({"text": json_values, "from": json_values})),
            "conversation_summary": json_values,
            "dropped": json_values,
        },
    )
)
def test_any_json_is_read_or_refused_with_a_reason_word(data: dict[str, Any]) -> None:
    outcome = read_or_refused(json.dumps(data))
    if isinstance(outcome, str):
        assert outcome in {"empty_summary", "not_a_summary", "unparseable"}
    else:
        assert outcome
        assert all(text == " ".join(text.split()) for text in outcome)
        "".join(outcome).encode("utf-8")


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_or_refused(text) in {"empty_summary", "not_a_summary", "unparseable"}


# --- sources

TALK = talk(
    "My sister Clara gets married in Porto on 12 June and I want to go by train.",
    "Lovely! From Zurich you would change in Lyon and Barcelona.",
    "The whole trip must stay under 900 francs.",
    "Then book the Lyon leg before April, prices rise afterwards.",
    start=11,
)


@pytest.mark.parametrize(
    ("text", "seqs"),
    [
        ("The trip must cost less than 900 francs", (13,)),
        ("Clara, the user's sister, marries in Porto on 12 June", (11,)),
        ("Route from Zurich: change in Lyon and Barcelona", (12,)),
        ("The user keeps two cats named Miso and Tofu", ()),
    ],
)
def test_a_bare_item_gets_the_message_that_it_was_drawn_from(text: str, seqs: tuple[int, ...]) -> None:
    assert attribute_sources(candidate(item(text)), TALK).items[0].from_seqs == seqs


def test_sources_outside_the_span_are_replaced() -> None:
    items = attribute_sources(candidate(item("Stay under 900 francs", 2, 99), item("Clara", 11, 99)), TALK).items
    assert [each.from_seqs for each in items] == [(13,), (11,)]


def test_a_source_that_an_entry_of_the_state_names_stays() -> None:
    state = [entry("F1", "The trip must stay under 900 francs", seqs=(2, 3))]
    told = candidate(item("Stay under 900 francs", 2, 99), item("Clara, under 900 francs", 11, 3), item("Porto", 4))
    items = attribute_sources(told, TALK, state).items
    assert [each.from_seqs for each in items] == [(2,), (11, 3), (11,)], "no message is added beside it"


def test_inflection_does_not_hide_a_source() -> None:
    span = talk("Мы решили хранить документы в Postgres.", "Хорошо, а резервные копии куда?", "Копии будут в Минске.")
    items = attribute_sources(
        candidate(item("Документов хранилище: Postgres, так решено"), item("Копии хранятся в Минске")), span
    ).items
    assert [each.from_seqs for each in items] == [(1,), (3,)]


def test_a_tool_result_is_a_source_too() -> None:
    result = {"type": "tool_result", "tool_call_id": "c", "content": "Flight LX2086 departs Zurich 07:25"}
    span = [*TALK, message(15, "", "tool", parts=[result])]
    (found,) = attribute_sources(candidate(item("LX2086 leaves Zurich at 07:25")), span).items
    assert found.from_seqs == (15,)
