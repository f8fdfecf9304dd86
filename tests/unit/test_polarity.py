"""Statements that a summary turned round go back to what was said; those told in other words stay."""

from __future__ import annotations

import pytest

from app.domain.gating.polarity import is_turned_round
from app.domain.words.text import stems
from tests.unit.talk import candidate, item, talk
from tests.unit.test_grounding import grounded, one, texts

TURNED: list[tuple[str, str]] = [
    ("The invoice has not been paid.", "The invoice has been paid"),
    ("The invoice has been paid.", "The invoice has not been paid"),
    ("Anna did not approve the budget.", "Anna approved the budget"),
    ("Anna approved the budget.", "Anna did not approve the budget"),
    ("We aren't moving to Berlin.", "They are moving to Berlin"),
    ("My sister doesn't drink alcohol.", "The user's sister drinks alcohol"),
    ("The backup isn't encrypted.", "The backup is encrypted"),
    ("The backup is encrypted.", "The backup is not encrypted"),
    ("I will never sell the house.", "The user will sell the house"),
    ("Please do not share the report with Acme.", "The report is to be shared with Acme"),
    ("There are no tests for the parser.", "There are tests for the parser"),
    ("I can not attend the meeting.", "The user can attend the meeting"),
    ("We didnt hire Bob.", "They hired Bob"),
    ("Счёт не оплачен.", "Счёт оплачен"),
    ("Счёт оплачен.", "Счёт не оплачен"),
    ("Анна не одобрила бюджет.", "Анна одобрила бюджет"),
    ("Мы не переезжаем в Берлин.", "Команда переезжает в Берлин"),
    ("Резервная копия не зашифрована.", "Резервная копия зашифрована"),
    ("Я никогда не продам дом.", "Пользователь продаст дом"),
    ("Не отправляй отчёт в Acme.", "Отчёт нужно отправить в Acme"),
    ("Нет тестов для парсера.", "Есть тесты для парсера"),
    ("发票没有支付。", "发票已经支付"),
    ("我不喝酒。", "用户喝酒"),
    ("我们不搬到柏林。", "团队搬到柏林"),
    ("备份没有加密。", "备份已加密"),
    ("I don't eat meat.", "The user eats meat"),
    ("I do eat meat.", "The user doesn't eat meat"),
    ("The server is not reachable from the office.", "The server is reachable from the office"),
]
KEPT: list[tuple[list[str], str]] = [
    (["We will not use Kubernetes, we will use Nomad."], "The team will use Nomad"),
    (["I'm not allergic to peanuts, but I am allergic to shellfish."], "The user is allergic to shellfish"),
    (["I don't eat meat. I eat fish."], "The user eats fish"),
    (["We don't ship until Friday."], "Shipping happens on Friday"),
    (["Not only the API but also the worker is slow."], "The API and the worker are slow"),
    (["Don't forget to call Anna."], "Anna must be called"),
    (["I can't wait to see Lisbon."], "The user looks forward to seeing Lisbon"),
    (["No problem, use Redis for the sessions."], "Redis is used for the sessions"),
    (["Is the migration finished?", "No, not yet."], "The migration is not finished"),
    (["Do you eat meat?", "No."], "The user does not eat meat"),
    (["I stopped smoking in May."], "The user does not smoke since May"),
    (["We have no budget for ads."], "There is no advertising budget"),
    (["We have no budget for ads."], "Ads have zero budget"),
    (["Use Postgres. Do not use MySQL."], "Postgres is used"),
    (["Use Postgres. Do not use MySQL."], "Postgres, not MySQL"),
    (["The tests pass now, they did not pass yesterday."], "The tests pass now"),
    (["I never said the budget was fixed."], "The user says the budget is not fixed"),
    (["The door does not close."], "The door cannot be closed"),
    (["It doesn't work without a proxy."], "A proxy is required for it to work"),
    (["There is no reason not to use Redis."], "Redis should be used"),
    (["Why don't we use Redis?"], "The user suggests using Redis"),
    (["Let's not deploy on Friday, let's deploy on Monday."], "The deployment is on Monday"),
    (["I haven't decided on the colour."], "The colour is undecided"),
    (["I have never been to Japan."], "The user has never visited Japan"),
    (["Nobody likes the new logo."], "The new logo is disliked by everybody"),
    (["I don't like the new logo."], "The user dislikes the new logo"),
    (["The bug is not in the parser but in the lexer."], "The bug is in the lexer"),
    (["Мы не берём Kubernetes, берём Nomad."], "Команда берёт Nomad"),
    (["Не раньше пятницы."], "Срок — не раньше пятницы"),
    (["Не забудь позвонить Анне."], "Нужно позвонить Анне"),
    (["Я не только пишу код, но и тестирую."], "Пользователь пишет код и тестирует"),
    (["Мясо я не ем, рыбу ем."], "Пользователь ест рыбу"),
    (["Тесты не проходят."], "Тесты падают"),
    (["Ошибка не в парсере, а в лексере."], "Ошибка в лексере"),
    (["У нас нет бюджета на рекламу."], "Бюджет на рекламу отсутствует"),
    (["Миграция готова?", "Нет, не готова."], "Миграция не готова"),
    (["Я никогда не был в Японии."], "Пользователь не бывал в Японии"),
    (["我不吃肉,我吃鱼。"], "用户吃鱼"),
    (["我不但会英语,也会法语。"], "用户会英语和法语"),
    (["我没去过日本。"], "用户从未去过日本"),
    (["不用MySQL,用Postgres。"], "使用Postgres"),
    (["Anna isn't allergic to peanuts. Boris is allergic to peanuts."], "Boris is allergic to peanuts"),
]


@pytest.mark.case("8")
@pytest.mark.parametrize(("said", "told"), TURNED)
def test_what_was_turned_round_goes_back_to_what_was_said(said: str, told: str) -> None:
    for span, seqs in ((talk(said), (1,)), (talk("Hello there.", "Hello!", said, "I see.", "Well?"), ())):
        result = one(span, told, *seqs)
        assert (texts(result), result.repaired) == ([said], 1)


@pytest.mark.case("22b")
@pytest.mark.parametrize(("said", "told"), KEPT)
def test_a_denial_in_other_words_is_left_alone(said: list[str], told: str) -> None:
    result = one(talk(*said), told, *range(1, len(said) + 1))
    assert (texts(result), result.repaired) == ([told], 0)


def test_a_narrative_loses_the_sentence_that_was_turned_round() -> None:
    span = talk("The invoice of Acme has not been paid.", "I see.", "We met in Graz.")
    told = "They met in Graz. The invoice of Acme has been paid."
    result = grounded(span, candidate(item("Met in Graz", 3), narrative=told))
    assert result.candidate.narrative == {"conversation_summary": "They met in Graz."}


def test_a_later_word_that_says_it_so_carries_it() -> None:
    span = talk("The invoice has not been paid.", "I see.", "Good news: the invoice has been paid.")
    assert one(span, "The invoice has been paid", 3).repaired == 0


def test_control_the_denial_is_what_tells() -> None:
    """The same words without it are no contrary."""
    for said, told in (("The invoice has been paid.", "The invoice is paid"), ("Счёт оплачен.", "Счёт оплачен")):
        assert not is_turned_round(told, [(said, frozenset(stems(said)))])
