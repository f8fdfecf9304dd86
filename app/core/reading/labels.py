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
    about_of: str
    lately: str
    last: str
    last_by: str
    brief: str
    middling: str
    lengthy: str
    informal: str
    polite: str
    friendly: str
    frustrated: str
    upset: str
    over: str
    over_name: str
    relieved: str
    calm: str
    since: str
    steady: str
    better: str
    worse: str


PHRASES: Final[Mapping[str, Phrases]] = {
    "en": Phrases(
        open_question="Open question: ",
        before="before: ",
        tone="Tone: ",
        uses="Uses with ease: ",
        about="About {topics}.",
        about_of="About {subject}: {topics}.",
        lately="; lately ",
        last="Last: {text}",
        last_by="Last ({speaker}): {text}",
        brief="brief messages",
        middling="messages of a sentence or two",
        lengthy="long, detailed messages",
        informal="informal",
        polite="polite",
        friendly="friendly",
        frustrated="frustrated",
        upset="worried or tired",
        over=" over the {topic}",
        over_name=" over {topic}",
        relieved=", relieved at the end",
        calm=", calmer at the end",
        since="relieved after earlier trouble",
        steady="mood stable",
        better="mood improving",
        worse="mood worsening",
    ),
    "ru": Phrases(
        open_question="Открытый вопрос: ",
        before="раньше: ",
        tone="Тон: ",
        uses="Свободно пользуется понятиями: ",
        about="О чём речь: {topics}.",
        about_of="О чём речь: {subject}: {topics}.",
        lately="; в последнее время ",
        last="Последнее: {text}",
        last_by="Последнее ({speaker}): {text}",
        brief="короткие сообщения",
        middling="сообщения в одно-два предложения",
        lengthy="длинные, подробные сообщения",
        informal="неформально",
        polite="вежливо",
        friendly="дружелюбно",
        frustrated="раздражение",
        upset="тревога или усталость",
        over=" («{topic}»)",
        over_name=" («{topic}»)",
        relieved=", в конце облегчение",
        calm=", в конце спокойнее",
        since="облегчение после прежних трудностей",
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


def role_of(label: str) -> str | None:
    """Whose label this is (``"Assistant: "``), in any language; ``None`` for somebody with a name of their own."""
    return _LABELLED.get(label.removesuffix(": "))


_LABELLED: Final[Mapping[str, str]] = {
    name: role for names in _ROLES.values() for name, role in zip(names, ("user", "assistant", "tool"), strict=True)
}
