"""What a doctor looks for in a stored state, and what is healthy although it looks odd."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.gating.health import findings
from app.domain.schemas import SESSION

STORY = "Anna and the assistant planned a trip to Riga in May, and the flight is booked for the fourteenth."


def sick(**state: Any) -> list[tuple[str, str | None]]:
    return [(found.sickness, found.field) for found in findings(SESSION, state, covered_messages=20)]


@pytest.mark.parametrize(
    "text",
    [
        "Error: 429 Too Many Requests",
        "RateLimitError: quota exceeded for this project",
        "Traceback (most recent call last):\n  File",
        "503 Service Unavailable",
        '{"error": {"code": 500, "message": "internal"}}',
        "RESOURCE_EXHAUSTED",
        "rate limit exceeded, try again in 20s",
        "Ошибка: превышен лимит запросов",
    ],
)
def test_an_error_text_is_no_memory(text: str) -> None:
    assert sick(conversation_summary=text) == [("error_text", "conversation_summary")]
    assert sick(logos=["The budget is 900 euros.", text]) == [("error_text", "logos")]


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I cannot summarize this conversation.",
        "Please provide the conversation you want me to summarize.",
        "Извините, я не могу составить краткое изложение.",
    ],
)
def test_an_excuse_is_no_memory(text: str) -> None:
    assert sick(conversation_summary=text) == [("no_summary", "conversation_summary")]


@pytest.mark.parametrize(
    "text",
    [
        STORY[:-1] + " and the",
        STORY[:-1] + ", because they",
        STORY[:-1] + ",",
        "Анна и ассистент планировали поездку в Ригу в мае, и рейс забронирован на",
        STORY + " Later they moved the departure to the afternoon and the hotel confir",
        STORY + " They will pay 1,200",
        "Анна летом планирует дальнюю поездку. Рейс забронирован, а гостиница будет стоить 110 000 руб",
        "他们计划五月去里加旅行，并且已经订好了机票和酒店，预算是八千元。现在只需要决定第一天晚上去哪，场地在西湖图书馆，后来改成浙江图书馆，租金一千元，签到由李芳",
        '{"logos": ["The budget is 900 eur',
        "They wrote this:\n```python\nprint(1)\n",
        "The user moves the database to a server of",
        "Anna booked the flight to Riga, because",
        "Anna booked the flight, the hotel,",
        "Пользователь переносит базу с MySQL на",
        "Анна забронировала рейс, потому что",
        "Гостиница забронирована из-за",
    ],
)
def test_a_story_that_breaks_off(text: str) -> None:
    assert sick(conversation_summary=text) == [("cut_off", "conversation_summary")]


def test_an_empty_state_that_stands_for_many_messages() -> None:
    assert sick(logos=[], conversation_summary="  ") == [("empty", None)]
    assert findings(SESSION, {}, covered_messages=3) == []


@pytest.mark.parametrize(
    "state",
    [
        {"conversation_summary": STORY},
        {"conversation_summary": "Trip to Riga"},
        {"conversation_summary": "The one that Anna asked for"},
        {"conversation_summary": "Riga or Tallinn: they chose option A"},
        {"conversation_summary": "Das Gespräch fing mit Riga an"},
        {"conversation_summary": "Поездка в Ригу, как договаривались до этого"},
        {"conversation_summary": "The form of the registration was repaired, and what is left to do is the sign-in"},
        {"conversation_summary": "The pinned versions of all packages of the project were moved to requirements.in"},
        {"conversation_summary": "Поездка в Ригу запланирована на май; билеты куплены, гостиница выбрана Анной"},
        {"conversation_summary": "他们计划五月去里加旅行，并且已经订好了机票和酒店，现在只需要决定第一天晚上去哪"},
        {"logos": ["The user sees 'Error: 429' when the nightly job runs.", "budget of", "port 8080"]},
        {"logos": ["The user got HTTP 500 from the payment page on 3 May."]},
        {"logos": ["ValueError handling was added to parser.py"]},
        {"conversation_summary": STORY + " Open points:\n- the hotel of the first night\n- Mr. Smith's visa"},
        {"conversation_summary": STORY + " They look forward to it \U0001f600"},
        {"conversation_summary": "Trip to Riga with Dr. Anna Berg and Prof. Cole from the office in Hamburg"},
        {"pathos": ["The assistant said it could not open the file."]},
        {"logos": ['The settings are {"retries": 3}']},
    ],
)
def test_what_only_looks_odd_is_healthy(state: dict[str, Any]) -> None:
    assert sick(**state) == []
