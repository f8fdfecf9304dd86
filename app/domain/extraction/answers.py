"""The offline responder: finds in the context what was asked, quotes it, and says that no model stands behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.extraction.cues import PLEASANTRY, cues_of
from app.domain.extraction.passages import clip, own_words
from app.domain.extraction.retrieval import Found, notes_of, rank, telling
from app.domain.model_io import ContextMessage
from app.domain.recall.serving import split_off
from app.domain.words.language import detect
from app.domain.words.text import GENERIC_STEMS, sentences, stems

_MOST_WORDS: Final = 118
_QUOTES: Final = 3
_QUOTE_CHARACTERS: Final = 200
_SOURCE_CHARACTERS: Final = 60
_WEAK: Final = 0.6  # of the best score: a quote below it is left out
_NEWS: Final = 0.4  # of the best one's own score: enough for a quote that answers another part of the question
_ECHO_CHARACTERS: Final = 160
_SHORT_REQUEST: Final = 12  # words; a longer text that speaks of a summary need not ask for one
_SAMPLE: Final = 4_000

_ASKS: Final = re.compile(
    r"[?？؟]|^\W*(?:what|who|when|where|why|how|which|whose|do you|did (?:i|we|you)|does|is there|are there"
    r"|can you|could you"
    r"|tell me|remind me|list|show|summari[sz]e|recap|explain|give me|что|кто|когда|где|почему|как|какой"
    r"|какая|какие|какое|сколько|чей"
    r"|напомни|расскажи|перечисли|покажи|подведи|объясни|помнишь)\b",
    re.IGNORECASE,
)
_ASKS_FOR_ALL: Final = re.compile(
    r"\b(?:summari[sz]e|summary|recap|sum up|what (?:did|have) (?:we|i) (?:talk|discuss|cover|do|been)"
    r"|where (?:do|did) (?:we|things) stand|so far|overview"
    r"|what do you (?:know|remember)|подведи итог|итоги?|о чём мы|о чем мы|на чём мы|на чем мы"
    r"|что ты (?:знаешь|помнишь)|вкратце)\b",
    re.IGNORECASE,
)
_GREETS: Final = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|evening|afternoon)|привет\w*|здравствуй\w*|добрый|доброе)\b", re.IGNORECASE
)
_THANKS: Final = re.compile(r"^\W*(?:thanks?|thank you|thx|great,? thanks|cheers|спасибо|благодар\w+)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    found: tuple[str, ...]
    all: str
    nothing: str
    from_state: str
    you: str
    me: str
    noted: tuple[str, ...]
    correction: tuple[str, ...]
    decision: tuple[str, ...]
    before: str
    greeting: str
    thanks: str
    notice: str


_WORDINGS: Final = {
    "en": _Wording(
        found=("This is what I find in our conversation:", "The conversation says:", "Here is where it came up:"),
        all="In short, this is what stands in our conversation:",
        nothing="I find nothing about that in our conversation.",
        from_state="earlier",
        you="you",
        me="I",
        noted=("Noted: {text}", "Got it: {text}", "Taken down: {text}"),
        correction=("Noted the correction: {text}", "Corrected: {text}"),
        decision=("Noted as decided: {text}", "Noted, that is settled: {text}"),
        before="Before, it said:",
        greeting="Hello! Tell me something, or ask about what was said before.",
        thanks="You're welcome.",
        notice="(Offline: no language model is configured, so I only quote. Set GOOGLE_API_KEY for real answers.)",
    ),
    "ru": _Wording(
        found=("Вот что есть об этом в нашем разговоре:", "В разговоре об этом сказано:", "Вот где об этом шла речь:"),
        all="Коротко, вот что есть в нашем разговоре:",
        nothing="В нашем разговоре об этом ничего не нахожу.",
        from_state="ранее",
        you="вы",
        me="я",
        noted=("Записано: {text}", "Принято: {text}", "Учтено: {text}"),
        correction=("Поправка записана: {text}", "Исправлено: {text}"),
        decision=("Записано как решённое: {text}", "Решение записано: {text}"),
        before="Раньше было сказано:",
        greeting="Здравствуйте! Расскажите что-нибудь или спросите о том, что уже обсуждалось.",
        thanks="Пожалуйста.",
        notice="(Офлайн: языковая модель не подключена, я только цитирую. Для ответов задайте GOOGLE_API_KEY.)",
    ),
}


def respond(messages: tuple[ContextMessage, ...]) -> str:
    """Answer the last user message from the rest of the context: quotes for a question, a receipt for a statement."""
    spoken = [message for message in messages if message.role != "system"]
    last = next((index for index in range(len(spoken) - 1, -1, -1) if spoken[index].role == "user"), None)
    recalled, asked = split_off(_text(spoken[last]) if last is not None else "")
    context = [*spoken[:last], ContextMessage(role="user", content=recalled)] if last is not None else spoken
    words = _WORDINGS[_language(asked, context)]
    asks = _ASKS.search(asked) or (_ASKS_FOR_ALL.search(asked) and asked.count(" ") < _SHORT_REQUEST)
    body = (_answer if asks else _receipt)(asked, context, words)
    return f"{_limit(body, _MOST_WORDS - len(words.notice.split()))}\n\n{words.notice}"


def _text(message: ContextMessage) -> str:
    parts = [str(part.get("text", "")) for part in message.parts if part.get("type") == "text"]
    return "\n".join(text for text in [message.content, *parts] if text)


def _language(asked: str, context: Sequence[ContextMessage]) -> str:
    """English or Russian; the message decides by its letters when it is too short to tell."""
    found = detect(asked) or ("ru" if re.search(r"[а-яё]{2}", asked.lower()) else None)
    if found is None and not re.search(r"[a-z]{2}", asked.lower()):
        found = detect("\n".join(message.content for message in context)[-_SAMPLE:])
    return "ru" if found == "ru" else "en"


def _answer(asked: str, context: Sequence[ContextMessage], words: _Wording) -> str:
    notes = notes_of(context)
    if _ASKS_FOR_ALL.search(asked):
        found = [Found(note=note, text=note.text, score=1.0) for note in notes if note.is_narrative]
        found += [
            Found(note=note, text=note.text, score=1.0) for note in notes if note.seq is None and not note.is_narrative
        ]
        found = found or telling(notes, _QUOTES)
        if found:
            return "\n".join([words.all, *(_quote(one, words) for one in found[: _QUOTES + 1])])
    found = rank(asked, notes)
    query = frozenset(stems(asked)) - GENERIC_STEMS
    kept: list[Found] = []
    answered: set[str] = set()
    for one in found:
        news = query & set(stems(one.text)) - answered
        fits = one.score >= _WEAK * found[0].score
        adds = kept and news and one.own >= _NEWS * found[0].own
        if len(kept) < _QUOTES and (fits or adds):
            kept.append(one)
            answered |= news
    if not kept:
        return words.nothing
    return "\n".join([_vary(words.found, asked), *(_quote(one, words) for one in kept)])


def _quote(found: Found, words: _Wording) -> str:
    who = {"user": words.you, "assistant": words.me}.get(found.note.role, "")
    elsewhere = clip(found.note.source, _SOURCE_CHARACTERS) or words.from_state
    where = elsewhere if found.note.seq is None else f"#{found.note.seq}{f', {who}' if who else ''}"
    return f"> {where}: {clip(' '.join(found.text.split()), _QUOTE_CHARACTERS)}"


def _receipt(said: str, context: Sequence[ContextMessage], words: _Wording) -> str:
    pieces = sentences(own_words(said))
    telling = [piece for piece in pieces if not PLEASANTRY.match(piece) and len(stems(piece)) > 1]
    if not telling:
        if _THANKS.match(said):
            return words.thanks
        return (
            words.greeting
            if _GREETS.match(said) or not pieces
            else _vary(words.noted, said).format(text=clip(pieces[0], _ECHO_CHARACTERS))
        )
    best = max(telling, key=lambda piece: (len(cues_of(piece)), -telling.index(piece)))
    cues = cues_of(best)
    echo = clip(best, _ECHO_CHARACTERS)
    if "correction" in cues or "update" in cues:
        before = next((one for one in rank(best, notes_of(context)) if one.text != best), None)
        receipt = _vary(words.correction, said).format(text=echo)
        return receipt if before is None else f"{receipt}\n{words.before}\n{_quote(before, words)}"
    return _vary(words.decision if "decision" in cues else words.noted, said).format(text=echo)


def _vary(choices: Sequence[str], text: str) -> str:
    """One of several wordings, always the same for the same text."""
    return choices[sum(map(ord, text)) % len(choices)]


def _limit(body: str, most: int) -> str:
    """At most so many words; whole lines go first."""
    lines = body.split("\n")
    while len(lines) > 2 and len(" ".join(lines).split()) > most:  # noqa: PLR2004 - a heading and one quote
        lines.pop()
    counted = "\n".join(lines)
    return counted if len(counted.split()) <= most else " ".join(counted.split()[:most]) + "…"
