"""The few words the offline model adds of its own, by language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_ROLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "en": ("User", "Assistant", "Tool"),
    "ru": ("Пользователь", "Ассистент", "Инструмент"),
    "uk": ("Користувач", "Асистент", "Інструмент"),
    "de": ("Nutzer", "Assistent", "Werkzeug"),
    "fr": ("Utilisateur", "Assistant", "Outil"),
    "es": ("Usuario", "Asistente", "Herramienta"),
    "it": ("Utente", "Assistente", "Strumento"),
    "pt": ("Usuário", "Assistente", "Ferramenta"),
    "nl": ("Gebruiker", "Assistent", "Tool"),
    "pl": ("Użytkownik", "Asystent", "Narzędzie"),
    "zh": ("用户", "助手", "工具"),
    "ja": ("ユーザー", "アシスタント", "ツール"),
    "ko": ("사용자", "어시스턴트", "도구"),
    "ar": ("المستخدم", "المساعد", "الأداة"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Templates of one language."""

    open_question: str
    before: str
    tone: str
    uses: str
    about: str
    continued: str
    earlier: str
    began: str
    dipped: str
    last: str
    empty: str
    brief: str
    middling: str
    lengthy: str
    informal: str
    polite: str
    friendly: str
    frustrated: str
    steady: str
    better: str
    worse: str


PHRASES: Final[Mapping[str, Phrases]] = {
    "en": Phrases(
        open_question="Open question: ",
        before="before: ",
        tone="Tone: ",
        uses="Uses with ease: ",
        about="The conversation was mainly about {topics}.",
        continued="Then it was mainly about {topics}.",
        earlier="Earlier: {text}",
        began="It began with: {text}",
        dipped="frustrated in between",
        last="Where it stands: {text}",
        empty="A short exchange: {text}",
        brief="brief messages",
        middling="messages of a few sentences",
        lengthy="long, detailed messages",
        informal="informal",
        polite="polite",
        friendly="warm",
        frustrated="frustrated at times",
        steady="mood stable",
        better="mood improving",
        worse="mood worsening",
    ),
    "ru": Phrases(
        open_question="Открытый вопрос: ",
        before="раньше: ",
        tone="Тон: ",
        uses="Свободно пользуется понятиями: ",
        about="Разговор шёл главным образом о следующем: {topics}.",
        continued="Затем речь шла о следующем: {topics}.",
        earlier="Раньше: {text}",
        began="Началось с такого: {text}",
        dipped="в середине раздражение",
        last="На чём остановились: {text}",
        empty="Короткий обмен репликами: {text}",
        brief="короткие сообщения",
        middling="сообщения в несколько предложений",
        lengthy="длинные, подробные сообщения",
        informal="неформально",
        polite="вежливо",
        friendly="тепло",
        frustrated="временами раздражённо",
        steady="настроение ровное",
        better="настроение улучшается",
        worse="настроение ухудшается",
    ),
}


def phrases(language: str) -> Phrases | None:
    """The templates of a language, ``None`` where only the conversation's own words may stand."""
    return PHRASES.get(language)


def role_label(role: str, language: str) -> str:
    """How a speaker without a name is called."""
    user, assistant, tool = _ROLES.get(language, _ROLES["en"])
    return {"user": user, "tool": tool}.get(role, assistant)
