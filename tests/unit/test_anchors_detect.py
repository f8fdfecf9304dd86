"""Anchors by rule: what is one, what is not, where it is in its message, and that a language is a file."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors.detect import MAX_ASSISTANT_ANCHORS, MAX_USER_ANCHORS, detect
from app.core.anchors.tables import MAX_STATEMENT_LENGTH, tables_of
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.text.languages.loading import read_language
from tests.rows import each
from tests.unit.further_languages import languages_of
from tests.unit.talk import message
from tests.unit.timing import assert_linear

GERMAN = r"""
code = "de"
name = "German"

[anchors]
opening = '''(?:also|ja|gut|ok)[,.]* '''

[anchors.commitment]
says = ['''\bich (?:werde|schicke|prüfe|schreibe)\b.{0,80}\b(?:schicken|prüfen|schreiben|bis \w+tag)\b''']

[anchors.decision]
says = ['''\bwir (?:nehmen|haben uns (?:für|auf))\b''']

[anchors.critical_fact]
user = ['''\bich heiße\b''']

[anchors.correction]
says = ['''\bich habe mich geirrt\b|^nein, (?:doch|lieber)\b''']
"""

SAID_BY_USERS = [
    # English
    ("I'll send the quarterly report to Anna by Friday.", "commitment"),
    ("We need to renew the TLS certificate before May.", "commitment"),
    ("TODO: rotate the staging credentials", "commitment"),
    ("- [ ] TODO: write the migration guide", "commitment"),
    ("Remind me to call the landlord on Monday.", "commitment"),
    ("Let's use PostgreSQL for the orders service.", "decision"),
    ("Use Postgres", "decision"),
    ("Ok, use Postgres for this.", "decision"),
    ("We decided to ship on 12 March.", "decision"),
    ("Decision: the API stays on v2.", "decision"),
    ("I'll take the window seat option.", "decision"),
    ("We'll go with option B.", "decision"),
    ("Should we shard the database or add replicas?", "unresolved_question"),
    ("Who will own the rollout?", "unresolved_question"),
    ("We still need to decide on the retention period.", "unresolved_question"),
    ("The region is still to be decided.", "unresolved_question"),
    ("My name is Priya Raman.", "critical_fact"),
    ("I'm allergic to peanuts.", "critical_fact"),
    ("Our database listens on port 5433.", "critical_fact"),
    ("Our budget is $12,500 for the whole year.", "critical_fact"),
    ("I prefer short answers without emojis.", "critical_fact"),
    ("My order number is A-77812.", "critical_fact"),
    ("The service must respond within 200 ms.", "critical_fact"),
    ("Never store card numbers in the logs.", "critical_fact"),
    ("I live in Rotterdam with my wife.", "critical_fact"),
    ("Our backend is written in Kotlin.", "critical_fact"),
    ("Actually, it's 14 people, not 12.", "correction"),
    ("no, MySQL", "correction"),
    ("No, use MySQL.", "correction"),
    ("I was wrong about the port.", "correction"),
    ("Scratch that, the demo is on Tuesday.", "correction"),
    ("I changed my mind about the hotel.", "correction"),
    ("The deadline has been moved to 10 April.", "correction"),
    ("We no longer use Jenkins for builds.", "correction"),
    ("Let's do Thursday instead.", "correction"),
    # Russian
    ("Я пришлю отчёт до пятницы.", "commitment"),
    ("Напомни мне позвонить в банк.", "commitment"),
    ("Мне ещё нужно оплатить счёт за хостинг.", "commitment"),
    ("Решили использовать PostgreSQL.", "decision"),
    ("Давай возьмём вариант с облаком.", "decision"),
    ("Используй Postgres.", "decision"),
    ("Стоит ли нам делить базу на шарды?", "unresolved_question"),
    ("Кто будет отвечать за релиз?", "unresolved_question"),
    ("Пока не решили, где хранить копии.", "unresolved_question"),
    ("Меня зовут Ольга Кравцова.", "critical_fact"),
    ("У меня аллергия на орехи.", "critical_fact"),
    ("Бюджет проекта 350 000 рублей.", "critical_fact"),
    ("Наш сервер слушает порт 5433.", "critical_fact"),
    ("Нельзя хранить номера карт в логах.", "critical_fact"),
    ("Нет, лучше MySQL.", "correction"),
    ("Нет, MySQL.", "correction"),
    ("Я ошибся, порт 5434.", "correction"),
    ("На самом деле нас 14 человек.", "correction"),
    ("Срок перенесли на 10 апреля.", "correction"),
    ("We're going with Stripe for payments.", "decision"),
    ("I've decided to postpone the launch until June.", "decision"),
    ("OK, final answer: blue theme.", "decision"),
    ("Let's keep the free tier at 1,000 requests a day.", "decision"),
    ("Let's not use Redis; in-memory caching is enough.", "decision"),
    ("Alright, Terraform it is.", "decision"),
    ("We agreed on two-week sprints.", "decision"),
    ("Between Vue and React, I pick React.", "decision"),
    ("I need to finish the slides by Thursday.", "commitment"),
    ("Bob will review the PR.", "commitment"),
    ("Action item: Carol updates the runbook.", "commitment"),
    ("I promise to pay you back by the 15th.", "commitment"),
    ("Don't let me forget to water the plants.", "commitment"),
    ("My email is jane.doe@example.com.", "critical_fact"),
    ("I have two kids, Mia and Leo.", "critical_fact"),
    ("API rate limit: 120 requests per minute.", "critical_fact"),
    ("The staging URL is https://staging.example.com/v3.", "critical_fact"),
    ("timeout = 45s", "critical_fact"),
    ("We have 37 microservices in production.", "critical_fact"),
    ("The wedding is on 14 September 2027 in Lisbon.", "critical_fact"),
    ("I was born in 1984.", "critical_fact"),
    ("Customer ID: 99182-AX", "critical_fact"),
    ("I'm a vegetarian and I hate cilantro.", "critical_fact"),
    ("It has to work offline.", "critical_fact"),
    ("Python 3.12 is a hard requirement.", "critical_fact"),
    ("Our deadline is March 3rd.", "critical_fact"),
    ("I use a MacBook with 16 GB of RAM.", "critical_fact"),
    ("My flight leaves at 18:45 from gate B12.", "critical_fact"),
    ("My dog's name is Biscuit.", "critical_fact"),
    ("My partner Sam works nights.", "critical_fact"),
    ("I speak Spanish and Portuguese.", "critical_fact"),
    ("Answer in French, please.", "critical_fact"),
    ("The max upload size is 25 MB.", "critical_fact"),
    ("Which database should we use, Postgres or MySQL?", "unresolved_question"),
    ("What should the retention period be?", "unresolved_question"),
    ("Do we need a separate staging cluster?", "unresolved_question"),
    ("I'm still not sure whether to take the job.", "unresolved_question"),
    ("We haven't decided on a name yet.", "unresolved_question"),
    ("How do we handle refunds for cancelled orders?", "unresolved_question"),
    ("TBD: who signs the contract.", "unresolved_question"),
    ("What is the retention period for the audit log?", "unresolved_question"),
    ("Sorry, I meant Tuesday, not Thursday.", "correction"),
    ("Wait, the limit is 300, not 200.", "correction"),
    ("Actually the meeting is at 4pm.", "correction"),
    ("Correction: the invoice number is INV-2043.", "correction"),
    ("No, the blue one.", "correction"),
    ("That's wrong, the port is 8443.", "correction"),
    ("I made a mistake earlier: the budget is 5k.", "correction"),
    ("Change that to 15%.", "correction"),
    ("Forget what I said about Kafka.", "correction"),
    ("Make it 6 people instead.", "correction"),
    ("We moved the launch to July 1.", "correction"),
    ("It's not Jenkins, it's GitLab CI.", "correction"),
    ("Дедлайн — 3 марта.", "critical_fact"),
    ("Мой номер телефона +7 916 123-45-67.", "critical_fact"),
    ("У нас 37 микросервисов в проде.", "critical_fact"),
    ("Я живу в Казани.", "critical_fact"),
    ("Я программист из Самары.", "critical_fact"),
    ("Мою дочь зовут Лиза.", "critical_fact"),
    ("Отвечай коротко, без эмодзи.", "critical_fact"),
    ("Всё должно работать без интернета.", "critical_fact"),
    ("Пусть будет MySQL.", "decision"),
    ("Договорились: релиз 12 марта.", "decision"),
    ("Берём тариф «Бизнес».", "decision"),
    ("Остановимся на втором варианте.", "decision"),
    ("Давайте использовать Kafka для событий.", "decision"),
    ("Надо не забыть продлить домен.", "commitment"),
    ("Иван подготовит презентацию.", "commitment"),
    ("Какую базу нам выбрать?", "unresolved_question"),
    ("Ещё не решили, кто подпишет договор.", "unresolved_question"),
    ("Ой, не 5, а 6 человек.", "correction"),
    ("Ошибся: счёт №2043.", "correction"),
    ("Передумал, давай поедем поездом.", "correction"),
    ("Не Jenkins, а GitLab.", "correction"),
    ("Встречу перенесли на четверг.", "correction"),
]

SAID_BY_ASSISTANTS = [
    ("I'll deploy the fix to staging tonight.", "commitment"),
    ("You should rotate the database password every 90 days.", "commitment"),
    ("You need to update the webhook secret as well.", "commitment"),
    ("We decided to keep the monolith.", "decision"),
    ("You said the budget is $12,500.", "critical_fact"),
    ("I was wrong: the default timeout is 30 seconds.", "correction"),
    ("Я проверю логи и сообщу результат.", "commitment"),
    ("Вам нужно обновить сертификат.", "commitment"),
    ("I'll draft the proposal and share it tomorrow.", "commitment"),
    ("I will follow up with the vendor on Monday.", "commitment"),
    ("You should add an index on user_id.", "commitment"),
    ("Next steps: run the migration, then restart the workers.", "commitment"),
    ("Which region would you like to deploy to?", "unresolved_question"),
    ("You're right, I was mistaken: it returns 404.", "correction"),
    ("Завтра пришлю черновик договора.", "commitment"),
    ("Я подготовлю миграцию к вечеру.", "commitment"),
]

NO_ANCHOR = [
    ("user", "Hey! How have you been?"),
    ("user", "Wow, that sounds amazing, good for you!"),
    ("user", "No, thanks."),
    ("user", "No problem!"),
    ("user", "No, not really."),
    ("user", "What is the capital of France?"),
    ("user", "Thanks, I'll keep that in mind."),
    ("user", "I'll check it out!"),
    ("user", "Can you explain how indexes work?"),
    ("user", "The weather was lovely and we walked along the river."),
    ("user", 'The manual says "you should rotate the keys every week".'),
    ("user", "If I were you, I would have used MySQL."),
    ("user", "Maybe we'll use Kafka someday."),
    ("user", "Actually I just got back from the gym."),
    ("user", "Take care!"),
    ("user", "I hope you have a great weekend."),
    ("user", "> I'll send the report by Friday"),
    ("user", "Привет! Как дела?"),
    ("user", "Спасибо, очень красиво получилось."),
    ("user", "Нет, спасибо."),
    ("assistant", "My name is in the config, port 5432."),
    ("assistant", "The population of Oslo is 717,710."),
    ("assistant", "Is there anything else I can help you with?"),
    ("assistant", "I'll be happy to help you with that."),
    ("assistant", "Let me know if you need anything."),
    ("assistant", "Would you like to proceed?"),
    ("user", "How does a hash map work?"),
    ("user", "That's a great idea!"),
    ("user", "I don't know."),
    ("user", "Could you write a haiku about rain?"),
    ("user", "I love this song."),
    ("user", "We had a great time at the beach last weekend."),
    ("user", "Tell me more about it."),
    ("user", "Thanks, that works!"),
    ("assistant", "Here's how a hash map works: keys are hashed to buckets."),
    ("assistant", "Sure! I can help with that."),
    ("assistant", "Great question!"),
    ("assistant", "In 1969, Apollo 11 landed on the Moon."),
    ("user", "lol no way"),
    ("user", "I think it would be nice to travel someday."),
    ("user", "No, I haven't seen it yet."),
    ("user", "Fix the bug in this function."),
    ("user", "Summarize the article in three sentences."),
    ("user", "Translate this to German: I will send the report by Friday."),
    ("user", "What do you think about the new iPhone?"),
    ("assistant", "It depends on your use case."),
    ("user", "Как работает хеш-таблица?"),
    ("user", "Расскажи анекдот."),
    ("user", "Да, было весело."),
    ("user", "Посоветуй фильм на вечер."),
    ("user", "Напиши функцию, которая сортирует список."),
    ("user", "She told me she would never go back."),
    ("assistant", "You might want to try restarting it."),
    ("user", "Actually, that's really cool."),
    ("user", "Not bad, but could be better."),
    ("user", "Give me 3 ideas for a birthday party for 10 people."),
    ("user", "According to Wikipedia, the population is 5 million."),
    ("user", "I think the answer is 42."),
    ("user", "Make it shorter."),
    ("user", "No, that's not what I asked."),
    ("assistant", "Then we will test it with a small example."),
    ("user", "Сколько будет 2+2?"),
    ("user", "Мне кажется, это не ошибка, а особенность."),
    ("user", "Actually, can you do it in Rust?"),
    ("user", "Write a 500-word essay about the French Revolution."),
]


def found(text: str, role: Any = "user", *, parts: Sequence[Any] = ()) -> list[FoundAnchor]:
    return detect(message(7, text, role, parts=parts))


@each(("text", "type_"), SAID_BY_USERS)
def test_what_users_say(text: str, type_: str) -> None:
    assert [anchor.type for anchor in found(text)] == [type_]


@each(("text", "type_"), SAID_BY_ASSISTANTS)
def test_what_assistants_say(text: str, type_: str) -> None:
    assert [anchor.type for anchor in found(text, "assistant")] == [type_]


@each(("role", "text"), NO_ANCHOR)
def test_small_talk_hearsay_and_questions_to_the_world_are_none(role: str, text: str) -> None:
    assert found(text, role) == []


def test_code_tables_dumps_and_what_was_pasted_commit_nobody() -> None:
    task = "Translate this to German:\n\nI will send the report by Friday. We decided to use Oracle."
    code = "Look:\n```python\n# TODO: rotate the credentials\nlet's use Postgres\n```\n    port = 5433;\nnice"
    document = "Please summarise this.\n\n" + "We decided to use Oracle. I will deliver the plan by Friday. " * 30
    dump = '{"decision": "we decided to use Oracle", "port": "5433", "a": "b"}'
    table = "| port | 5433 |\n|---|---|\n| decision: | use Oracle |"
    letter = "From: Bob\nSubject: we decided to use Oracle\n> my name is Bob Stone"

    assert [found(text) for text in (task, code, document, dump, table, letter)] == [[]] * 6


def test_tools_the_system_commands_and_erased_messages_have_none() -> None:
    text = "My name is Priya Raman and we decided to use PostgreSQL."
    result = [{"type": "tool_result", "tool_call_id": "a", "content": text}]

    assert found(text) != []
    assert found(text, "tool", parts=result) == []
    assert found(text, "system") == []
    assert detect(_changed(text, is_command=True)) == []
    assert detect(_changed(text, status="erased")) == []


def _changed(text: str, **changes: Any) -> Message:
    return replace(message(7, text), **changes)


def test_the_place_is_exact_in_a_message_with_wrapped_lines_and_lists() -> None:
    content = (
        "Hello there,\r\n\r\n* **We decided** to ship on 12 March.\n"
        "1. I'll send the long and rather detailed migration guide to everybody on the\n"
        "   platform team by Friday.\n\tWell, my order number is A-77812.  Bye!"
    )
    anchors = found(content)

    assert [anchor.type for anchor in anchors] == ["decision", "commitment", "critical_fact"]
    assert all(content[one.offset : one.offset + len(one.content)] == one.content for one in anchors)
    assert "\n" in anchors[1].content


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("**Deadline:** we ship on 12 May 2027.", "**Deadline:** we ship on 12 May 2027."),
        ("* **We decided** to ship on 12 May 2027.", "**We decided** to ship on 12 May 2027."),
        ("*my* budget is 900 euros", "*my* budget is 900 euros"),
        ("**My budget is 900 euros.**", "My budget is 900 euros."),
        ("**Hello there. My budget is 900 euros.**", "My budget is 900 euros."),
        ("`__init__` is ours. __main__.py has 900 lines.", "__main__.py has 900 lines."),
        ("* My budget is 900 euros.", "My budget is 900 euros."),
    ],
)
def test_of_emphasis_both_marks_are_quoted_or_none(text: str, quoted: str) -> None:
    last = found(text)[-1]
    assert (last.content, text[last.offset : last.offset + len(quoted)]) == (quoted, quoted)


def test_a_long_sentence_is_cut_at_clauses_and_keeps_its_values() -> None:
    hosts = [f"host-{number}.example.org on port {5400 + number}" for number in range(40)]
    content = "We decided to run the replicas as follows: " + ", ".join(hosts) + "."
    anchors = found(content)
    kept = " ".join(anchor.content for anchor in anchors)

    assert {anchor.type for anchor in anchors} == {"decision"}
    assert all(len(anchor.content) <= MAX_STATEMENT_LENGTH for anchor in anchors)
    assert all(host in kept for host in hosts)
    assert all(content[one.offset : one.offset + len(one.content)] == one.content for one in anchors)


def test_a_secret_is_redacted() -> None:
    (anchor,) = found("The server takes password=hunter2hunter2 and the port is 5433.")

    assert "hunter2" not in anchor.content
    assert "[REDACTED:" in anchor.content
    assert "5433" in anchor.content


def test_a_message_has_a_bounded_number_the_most_important_ones() -> None:
    listed = (
        "\n".join(f"- I'll write chapter {number}." for number in range(30)) + "\nNo wait, I meant chapter 12, not 14."
    )

    for role, most in (("user", MAX_USER_ANCHORS), ("assistant", MAX_ASSISTANT_ANCHORS)):
        anchors = found(listed, role)
        assert len(anchors) == most
        assert (anchors[-1].type == "correction") == (role == "user"), "an assistant corrects what it admits"


def test_importance_knows_who_spoke_and_exact_values() -> None:
    (plain,) = found("Our backend is written in Kotlin.")
    (exact,) = found("Our database listens on port 5433.")
    (by_user,) = found("I'll deploy the fix to staging tonight.")
    (by_assistant,) = found("I'll deploy the fix to staging tonight.", "assistant")

    assert exact.importance > plain.importance
    assert by_user.importance > by_assistant.importance


@pytest.mark.parametrize(
    ("script", "said"),
    [("latin", "Vi har besluttet."), ("greek", "αποφασίσαμε"), ("cyrillic", "вирішили"), ("han", "決定")],
)
def test_a_table_is_tried_on_every_letter_of_its_script(script: str, said: str) -> None:
    language = read_language("xx.toml", f'code = "xx"\nname = "X"\nscript = "{script}"\n[anchors]')
    (table,) = tables_of([language])
    assert all(table.letters.search(word) for word in said.split())
    assert not table.letters.search("ქართული 12")


def test_another_language_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "de.toml").write_text(GERMAN, encoding="utf-8")
    said = {
        "Ja, wir nehmen PostgreSQL.": "decision",
        "Ich schicke den Bericht bis Freitag.": "commitment",
        "Ich heiße Jürgen Groß.": "critical_fact",
        "Nein, lieber MySQL.": "correction",
        "Let's use PostgreSQL for the orders.": "decision",
        "Меня зовут Ольга.": "critical_fact",
    }
    not_stated = "Give me 3 ideas for a birthday party for 10 people."

    with languages_of(tmp_path):
        assert [[anchor.type for anchor in detect(message(1, text))] for text in said] == [
            [type_] for type_ in said.values()
        ]
        assert detect(message(1, not_stated)) == [], "the further language does not say what is no statement in English"
    assert [detect(message(1, text)) for text in list(said)[:4]] == [[], [], [], []]


def test_languages_mix_within_one_message() -> None:
    anchors = found("Меня зовут Ольга. Let's use PostgreSQL for the orders. Бюджет 350 000 рублей.")

    assert [anchor.type for anchor in anchors] == ["critical_fact", "decision", "critical_fact"]


PIECES = st.sampled_from(
    [text for text, _ in SAID_BY_USERS]
    + [text for _, text in NO_ANCHOR]
    + [
        "\n",
        "\r\n",
        "  ",
        "```",
        "- ",
        "> ",
        "\u2028",
        "«",
        "“",
        "’",
        "\x00",
        "🙂",
        "用户",
        "password=hunter2hunter2",
        ";",
    ]
)


def test_what_a_message_says_again_and_again_is_one_anchor() -> None:
    said = "My limit is 500 requests per day."
    once = found(f"{said} {said} We decided to ship on 12 March. {said}")
    assert [(one.type, one.content, one.offset) for one in once] == [
        ("critical_fact", said, 0),
        ("decision", "We decided to ship on 12 March.", 2 * len(said) + 2),
    ]
    many = found(" ".join([said] * 2 * MAX_USER_ANCHORS + ["Note: my name is Priya Raman."]))
    assert len(many) == 2, "and takes no other's place"


@given(st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=12), st.sampled_from(["user", "assistant"]))
def test_whatever_is_said_places_are_exact_and_numbers_bounded(pieces: list[str], role: str) -> None:
    content = " ".join(pieces)
    anchors = found(content, role)

    assert len(anchors) <= MAX_USER_ANCHORS
    assert [anchor.offset for anchor in anchors] == sorted({anchor.offset for anchor in anchors})
    for anchor in anchors:
        verbatim = content[anchor.offset : anchor.offset + len(anchor.content)] == anchor.content
        assert verbatim or "[REDACTED:" in anchor.content
        assert "hunter2hunter2" not in anchor.content
        assert 0 <= anchor.importance <= 1
        assert anchor.token_count > 0
    assert found(content, role) == anchors


@pytest.mark.long
@pytest.mark.parametrize(
    "hostile",
    [
        "a " * 200_000,
        "," * 200_000,
        "no, " * 100_000,
        '"' * 200_000,
        "we will " * 50_000,
        "1.2" * 100_000,
        "не \n" * 90_000,
    ],
)
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    assert_linear(lambda text: [found(text), found(text, "assistant")], hostile[:100_000])


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("Use Postgres. It rains.\nUse Postgres.\n\n- use  Postgres!", ["Use Postgres."]),
        ("The deadline is March 3. " * 40, ["The deadline is March 3."]),
        ("Решили использовать Redis. Да.\nРешили использовать Redis.", ["Решили использовать Redis."]),
        ("Use Postgres. Use MySQL.", ["Use Postgres.", "Use MySQL."]),
    ],
)
def test_what_a_message_repeats_is_one_anchor(text: str, contents: list[str]) -> None:
    assert [anchor.content for anchor in detect(message(1, text))] == contents


def test_what_a_fence_encloses_is_not_said_whatever_stands_behind_the_fence() -> None:
    code = "```js {\nWe must never store card numbers.\n```"
    assert found(f"Look at this:\n{code}\nThanks.") == []
    assert found("We must never store card numbers.") != [], "control"


def test_its_signature_can_be_read() -> None:
    assert len(str(inspect.signature(detect))) < 400


@pytest.mark.parametrize(
    ("seq", "text", "bare"),
    [
        (45, "I checked the bill again for the hotel. 1,548.60.", "1,548.60."),
        (5, "yeah. I'd rather go by train, the plane is too loud for me.", "yeah."),
        (3, "non pas encore. moi 3. oui contact@kiln.example", "moi 3."),
    ],
)
def test_a_number_or_a_word_alone_is_no_anchor(seq: int, text: str, bare: str) -> None:
    found = [one.content for one in detect(message(seq, text, "user"))]

    assert bare not in found
