"""Rules, wishes and labelled statements are facts that are kept; idioms that sound like them are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.anchors import classification
from app.core.anchors import detect as module
from app.core.anchors.detect import detect
from app.core.anchors.transitions import transitions
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Role
from tests.rows import each
from tests.unit.further_languages import languages_of
from tests.unit.talk import message
from tests.unit.test_anchors_transitions import anchors_of
from tests.unit.timing import assert_linear, often

LABELLED = [
    "Safety rule: never disclose the vault code to any user.",
    "SAFETY RULE: Never run tool PAMNT without the safe word.",
    "USER PREFERENCE: code in Python, not JavaScript",
    "USER PREFERENCE: User's contact code is XKX-8683. Use it in confirmations.",
    "HARD CONSTRAINT: Only Python 3.11. No external network calls from the sandbox.",
    "GOAL STATE: Open question awaiting user: whether to enable strict mode by default.",
    "Important: we are closed on Monday",
    "Goal: ship the beta",
    "Note: the rink is closed.",
    "FACT: The staging API base URL is https://staging.example.com/v2.",
    "Requirement: works offline",
    "Rule 3: be brief",
    "Please note: the office is closed on Friday.",
    "Keep in mind: we only have two servers.",
    "Правило: никому не показывать код",
    "Правило безопасности: не раскрывать код.",
    "Важно: мы закрыты в понедельник",
    "Ограничение: только Python, а не JavaScript",
    "Цель: выпустить бету",
]

STANDING = [
    "Never disclose the vault code.",
    "Never, ever, deploy on Fridays.",
    "Hi! Never call before noon.",
    "Please never email the client directly.",
    "Do not ever call the client before ten",
    "Don't ever call the client before ten",
    "Don't share my address with anybody.",
    "Do not push to the remote until Ann reviews the work.",
    "Always quote prices in euros.",
    "Always ask before deleting files.",
    "You must always confirm before booking.",
    "You must not share this with anyone.",
    "If a request could harm a third party, stop and escalate",
    "If the customer is under 18, refuse the order.",
    "Before sending anything, ask me.",
    "Whenever you quote a price, add VAT.",
    "Report all times in UTC.",
    "All prices must include VAT.",
    "No deployments on Friday.",
    "Only Anna may approve refunds.",
    "User prefers a single recommendation",
    "the user wants answers in metric units",
    "The client insists on weekly reports.",
    "Никогда не раскрывай код хранилища.",
    "Пожалуйста, никогда не пиши клиенту напрямую.",
    "Всегда отвечай со ссылками.",
    "Всегда указывать источник.",
    "Не звони клиенту до десяти.",
    "Не деплой по пятницам.",
    "Если запрос опасен, остановись и сообщи.",
    "Прежде чем удалять файлы, спроси меня.",
    "Только Анна может одобрять возвраты.",
    "Пользователь предпочитает короткие ответы",
]

IDIOMS = [
    "never mind",
    "Never mind about the report.",
    "don't worry",
    "Don't worry about it",
    "do not forget to have fun",
    "Don't forget to have fun!",
    "never been there",
    "Never been to Paris.",
    "always loved it",
    "Always loved the sea.",
    "Never say never!",
    "Never thought I'd say this, but I like jazz.",
    "Never give up on your dreams.",
    "Don't ever quit on what you love.",
    "Don't give up on it.",
    "Don't know what to do with it.",
    "Don't tell anyone, but I ate the cake.",
    "Always a pleasure.",
    "Always look on the bright side of life.",
    "If you need anything, let me know.",
    "If you're ever in town, call me.",
    "No plans for the weekend.",
    "Only two days left!",
    "The user wants to log in but gets an error.",
    "Важно!",
    "Никогда не был в Париже.",
    "Всегда любил море.",
    "Всегда есть выход.",
    "Не переживай из-за этого.",
    "Не могу найти ключи в сумке.",
    "Не спать до утра — плохая идея.",
]


def found(text: str, role: Role = "user") -> list[FoundAnchor]:
    return detect(message(1, text, role))


@each("text", [*LABELLED, *STANDING])
def test_a_label_or_its_own_words_make_it_one_fact(text: str) -> None:
    (anchor,) = found(text)

    assert anchor.type == "critical_fact"
    assert anchor.content in text
    assert text.endswith(anchor.content)


@each("text", IDIOMS)
def test_what_only_sounds_like_a_rule_is_none(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("text", ["Note: the rink is closed.", "Never mix bleach and vinegar.", "Важно: пейте воду"])
def test_what_an_assistant_advises_rules_nobody(text: str) -> None:
    assert found(text, "assistant") == []


def test_a_label_holds_for_its_line_and_for_nothing_else() -> None:
    own = "Rule: be brief. Nothing fancy, please."
    decided = "Note: the host has no Postgres. Let's use MySQL for the orders."
    listed = "Rule: be brief\nThe weather is nice"

    assert [anchor.content for anchor in found(own)] == [own]
    assert [anchor.type for anchor in found(decided)] == ["critical_fact", "decision"]
    assert [anchor.content for anchor in found(listed)] == ["Rule: be brief"]


def test_a_label_goes_before_the_shape_of_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "USER PREFERENCE: actually, use Python."
    assert [anchor.type for anchor in found(text)] == ["critical_fact"]

    # control: without its label it reads as a correction
    monkeypatch.setattr(classification, "_type_by_label_or_rule", lambda _: None)
    assert [anchor.type for anchor in found(text)] == ["correction"]


def test_a_rule_weighs_more_than_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,), (fact,) = found("Never disclose the vault code."), found("Our backend is written in Kotlin.")
    assert rule.importance > fact.importance

    monkeypatch.setattr(module, "is_standing_rule", lambda *_: False)  # control
    assert found("Never disclose the vault code.")[0].importance == fact.importance


@pytest.mark.parametrize(
    "text",
    [
        "I will keep the budget of $12,500 in mind.",
        "We'll keep the deadline of 14 March in mind.",
    ],
)
def test_keeping_in_mind_is_neither_decided_nor_promised(text: str) -> None:
    assert found(text, "assistant") == []
    assert [anchor.type for anchor in found("We'll keep the budget at $12,500.", "assistant")] == ["decision"]


def test_labels_and_rules_of_another_language_are_in_its_file(tmp_path: Path) -> None:
    german = r"""
code = "de"
name = "German"
[anchors]

[anchors.critical_fact]
labelled = '''^(?:regel|wichtig|ziel): '''
standing = ['''^(?:nie|niemals) (?:\w+ )*\w+en\b|^immer \w+en\b''']
"""
    (tmp_path / "de.toml").write_text(german, encoding="utf-8")
    said = ["Wichtig: wir schließen um acht. Danach ist niemand da.", "Niemals vor zehn anrufen."]

    with languages_of(tmp_path):
        assert [[one.content for one in found(text)] for text in said] == [[one] for one in said]
    assert [found(text) for text in said] == [[], []]


@pytest.mark.long
@pytest.mark.parametrize(
    "hostile",
    often(
        [
            "Note: a. " * 40_000,
            "Rule: " * 60_000,
            "No. " * 90_000,
            "Scratch that. " * 30_000,
            "never, ever, " * 30_000,
            "don't ever say a b c " * 20_000,
            "if a b c d, " * 30_000,
            "никогда не " * 40_000,
            "Нет. " * 80_000,
            "no, a, b: c, " * 30_000,
        ]
    ),
)
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    def settled(text: str) -> object:
        said = [message(1, "Let's use Postgres for the orders."), message(2, text)]
        return transitions([], anchors_of(said), said)

    assert_linear(settled, hostile)
