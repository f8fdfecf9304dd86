from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.schemas import SESSION
from app.domain.summarizing.candidate import (
    CandidateDrop,
    CandidateError,
    CandidateItem,
    attribute_sources,
    candidate_json_schema,
    parse_candidate,
)
from tests.unit.talk import answer, candidate, fact, item, message, talk


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
    assert len(objects) == 6
    assert all(each["additionalProperties"] is False for each in objects)
    assert all(each["required"] == list(each["properties"]) for each in objects)


def test_the_json_schema_uses_only_words_that_constrained_decoding_knows() -> None:
    schema = candidate_json_schema(SESSION)
    assert not {"$ref", "$defs", "anyOf", "default", "title"} & {key for each in walk(schema) for key in each}
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


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```",
        "Here is the state:\n```json\n{}\n```\nAnything else?",
        "Here is the JSON: {}",
        "\ufeff  {}  \n",
        "<think>the user wants {{a}} state</think>{}",
        "<thinking>\nlong\n</thinking>\n```json\n{}\n```",
    ],
)
def test_wrapping_is_forgiven(wrap: str) -> None:
    text = wrap.replace("{{a}}", "a").replace("{}", answer("s", [fact("Uses ``` and {braces}", 1)]))
    assert logos(text) == [("Uses ``` and {braces}", (1,), ())]


@pytest.mark.parametrize("outer", [lambda inner: {"state": inner}, lambda inner: [inner], lambda inner: [{"a": inner}]])
def test_an_object_that_holds_only_the_state_is_forgiven(outer: Any) -> None:
    assert logos(json.dumps(outer(json.loads(answer("s", ["a fact"]))))) == [("a fact", (), ())]


@pytest.mark.parametrize(
    ("given_item", "expected"),
    [
        ("a bare string", ("a bare string", (), ())),
        ({"text": "no from"}, ("no from", (), ())),
        ({"text": "t", "from": ["12", "#13", "seq 14", 15.0], "replaces": "f7"}, ("t", (12, 13, 14, 15), ("F7",))),
        ({"text": "t", "from": 12, "replaces": ["[F7]", "F7", "", None, 3]}, ("t", (12,), ("F7",))),
        ({"text": "t", "from": [True, None, 1.5, "x", {}, [1]]}, ("t", (), ())),
        ({"text": "t", "from": None, "replaces": None, "confidence": 0.9}, ("t", (), ())),
        ({"text": " - a\n  b\t c\x00\u2028d "}, ("a b c d", (), ())),
        ({"text": "-5 °C is the limit"}, ("-5 °C is the limit", (), ())),
        (42, ("42", (), ())),
        ({"text": "a\ud800b"}, ("a\ufffdb", (), ())),
    ],
)
def test_items_are_read_with_patience(given_item: Any, expected: Any) -> None:
    text = json.dumps({"logos": [given_item], "conversation_summary": "s"})
    assert logos(text) == [expected]


@pytest.mark.parametrize(
    ("given_items", "expected"),
    [(None, []), ("", []), (["", "  ", None, {"text": ""}, "-"], ["-"]), ("one", ["one"]), ({"text": "one"}, ["one"])],
)
def test_empty_items_go_and_a_single_one_is_a_list(given_items: Any, expected: list[str]) -> None:
    read = parse_candidate(json.dumps({"logos": given_items, "conversation_summary": "s"}), SESSION)
    assert [each.text for each in read.items] == expected


@pytest.mark.parametrize("summary", ["a  b", {"text": "a b"}, ["a", "b"], ["a", None, "b"]])
def test_the_narrative_may_come_in_other_clothes(summary: Any) -> None:
    assert parse_candidate(answer(summary, ["x"]), SESSION).narrative == {"conversation_summary": "a b"}


def test_a_missing_field_counts_as_empty_and_unknown_keys_are_ignored() -> None:
    read = parse_candidate('{"conversation_summary": "s", "mood": [[[{"a": NaN}]]], "logos": []}', SESSION)
    assert (read.items, read.narrative) == ((), {"conversation_summary": "s"})


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        ({"entry": "f2", "reason": "No longer relevant", "by_seq": "9"}, ("F2", "no_longer_relevant", 9)),
        ({"entry": "F2"}, ("F2", "", None)),
        ({"entry": "F2", "reason": 3, "by_seq": True}, ("F2", "", None)),
    ],
)
def test_drops_are_read_as_they_are_and_judged_later(drop: dict[str, Any], expected: tuple[str, str, int]) -> None:
    (read,) = parse_candidate(answer("s", dropped=[drop]), SESSION).dropped
    assert (read.entry, read.reason, read.by_seq) == expected


@pytest.mark.parametrize("drop", [{"reason": "resolved"}, "F2", None, 7, {"entry": ["F2"]}])
def test_a_drop_without_an_entry_is_none(drop: Any) -> None:
    assert parse_candidate(json.dumps({"conversation_summary": "s", "dropped": [drop]}), SESSION).dropped == ()


def proposed(*anchors: Any) -> list[tuple[str, str, int]]:
    """What is read of these beside an otherwise good candidate, which is never refused for them."""
    data = json.loads(answer("They met.", [fact("Lives in Basel", 1)])) | {"anchors": list(anchors)}
    read = parse_candidate(json.dumps(data), SESSION)
    assert [each.text for each in read.items] == ["Lives in Basel"]
    return [(each.type, each.quote, each.seq) for each in read.anchors]


@pytest.mark.parametrize(
    ("given_anchor", "expected"),
    [
        ({"type": "decision", "quote": "We take MySQL.", "seq": 4}, ("decision", "We take MySQL.", 4)),
        ({"type": "Critical Fact", "quote": " 900 francs \n", "seq": "#12"}, ("critical_fact", "900 francs", 12)),
        ({"type": "correction", "quote": "no,  two\tblanks", "seq": 3.0}, ("correction", "no,  two\tblanks", 3)),
        ({"type": "commitment", "quote": "Пришлю завтра", "seq": 2, "why": "x"}, ("commitment", "Пришлю завтра", 2)),
    ],
)
def test_anchors_are_read_verbatim(given_anchor: Any, expected: tuple[str, str, int]) -> None:
    assert proposed(given_anchor) == [expected]


@pytest.mark.parametrize(
    "given_anchor",
    [
        None,
        7,
        "a passage",
        [],
        {},
        {"type": "decision", "quote": "a"},
        {"type": "decision", "seq": 1},
        {"quote": "a", "seq": 1},
        {"type": "policy", "quote": "a", "seq": 1},
        {"type": ["decision"], "quote": "a", "seq": 1},
        {"type": "decision", "quote": ["a"], "seq": 1},
        {"type": "decision", "quote": "  ", "seq": 1},
        {"type": "decision", "quote": "a", "seq": True},
        {"type": "decision", "quote": "a", "seq": "first"},
        {"type": "decision", "quote": "a" * 100_000, "seq": 1},
    ],
)
def test_an_anchor_that_cannot_be_read_is_left_out(given_anchor: Any) -> None:
    good = {"type": "decision", "quote": "We take MySQL.", "seq": 4}
    assert proposed(given_anchor, good) == [("decision", "We take MySQL.", 4)]


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


@pytest.mark.parametrize(
    "text",
    ["", "  \n\t ", "\x00\x00", "<think>only thoughts {}</think>", "<think>never closed {", "null", "{}", "[]", '""'],
)
def test_nothing_is_an_empty_summary(text: str) -> None:
    assert refused(text) == "empty_summary"


def test_fields_without_any_text_are_an_empty_summary() -> None:
    assert refused(answer()) == "empty_summary"
    assert refused(answer("  ", ["", " "], [{"text": ""}])) == "empty_summary"
    assert refused(answer(dropped=[{"entry": "F1", "reason": "resolved", "by_seq": 1}])) == "empty_summary"


@pytest.mark.parametrize(
    "text",
    [
        "Sure! For the trip I would take the night train.",
        "Please provide the conversation.",
        "Да, конечно, давайте продолжим!",
        '"The user wants a train."',
        "In code: if (a) { return b }",
    ],
)
def test_prose_is_no_summary(text: str) -> None:
    assert refused(text) == "not_a_summary"


@pytest.mark.parametrize(
    "text",
    [
        '{"logos": ["a"',
        '{"logos": [a]}',
        'Here: {"logos": [}',
        "{'logos': ['a']}",
        '{"answer": "x", "b": 1}',
        '{"role": "assistant", "content": "Hi"}',
        '[{"name": "search"}, 2]',
        "42",
        "%%%",
        '{"logos": [["nested"]]}',
        '{"logos": [true]}',
        '{"logos": [{"fact": "x"}]}',
        '{"logos": {"a": "b"}}',
        '{"conversation_summary": {"text": {"text": "x"}}}',
    ],
)
def test_what_cannot_be_read_is_unparseable(text: str) -> None:
    assert refused(text) == "unparseable"


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
    started = time.perf_counter()
    assert refused(text) in {"unparseable", "empty_summary"}
    assert time.perf_counter() - started < 3


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
