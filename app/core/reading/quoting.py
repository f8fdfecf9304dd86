"""Somebody's words as a quotation that says whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.model.state import Origin

_QUOTES: Final[Mapping[str, Mapping[Origin, str]]] = {
    "en": {
        "user": "The user wrote",
        "assistant": "The assistant wrote",
        "system": "The system prompt says",
        "tool": "A tool returned",
        "document": "A document that the user pasted says",
    },
    "ru": {
        "user": "Пользователь написал",
        "assistant": "Ассистент написал",
        "system": "Системное сообщение гласит",
        "tool": "Инструмент вернул",
        "document": "Вставленный пользователем документ гласит",
    },
    "zh": {
        "user": "用户写道",
        "assistant": "助手写道",
        "system": "系统消息写道",
        "tool": "工具返回",
        "document": "用户粘贴的文档写道",
    },
    "de": {
        "user": "Der Nutzer schrieb",
        "assistant": "Der Assistent schrieb",
        "system": "Die Systemnachricht lautet",
        "tool": "Ein Werkzeug gab zurück",
        "document": "Ein eingefügtes Dokument besagt",
    },
    "fr": {
        "user": "L'utilisateur a écrit",
        "assistant": "L'assistant a écrit",
        "system": "Le message système dit",
        "tool": "Un outil a renvoyé",
        "document": "Un document collé dit",
    },
    "es": {
        "user": "El usuario escribió",
        "assistant": "El asistente escribió",
        "system": "El mensaje del sistema dice",
        "tool": "Una herramienta devolvió",
        "document": "Un documento pegado dice",
    },
}


_FRAMES: Final = tuple(f'{said}: "' for each in _QUOTES.values() for said in each.values())


def quoted(text: str, origin: Origin, language: str | None) -> str:
    """The text as somebody's words: ``The user wrote: "…"``, in the conversation's language where it is known."""
    said = _QUOTES.get((language or "en")[:2], _QUOTES["en"])[origin]
    return f'{said}: "{text}"'


def is_quoted(text: str) -> bool:
    """Whether a text is such a frame with somebody's words, whoever wrote it."""
    return text.endswith('"') and text.startswith(_FRAMES)
