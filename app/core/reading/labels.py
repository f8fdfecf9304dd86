"""The few words that the offline model adds: ``roles`` and ``phrases`` in the files of ``languages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from app.core.model.conversation import Role
from app.core.text.escaping import plain_letters
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_talk import Phrases as Phrases  # noqa: PLC0414 - its readers find it here
from app.core.text.languages.sections_of_talk import Roles
from app.core.text.localization.catalogue import CATALOGUES
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.patterns import compiled
from app.core.text.speakers import name_in, with_speaker_name

_COLONS: Final = compiled("[:：]")
_PROVIDERS_ROLES: Final = frozenset({"developer", "model"})
_ROLES: Final[Mapping[str, Roles]] = {
    language.code: language.roles for language in languages() if language.roles is not None
}
PHRASES: Final[Mapping[str, Phrases]] = {
    language.code: language.phrases for language in languages() if language.phrases is not None
}


def phrases(language: str) -> Phrases | None:
    """The templates of a language; ``None`` if it has none, so that only words of the conversation may be used."""
    return PHRASES.get(language)


def role_label(role: str, language: str) -> str:
    """The label of a speaker without a name."""
    roles = _ROLES.get(language, _ROLES["en"])
    return {"user": roles.user, "tool": roles.tool}.get(role, roles.assistant)


def names_a_role(name: str) -> bool:
    """Whether a name reads like a role in any language, so that its owner could be taken for another role."""
    return not _ROLE_NAMES.isdisjoint(map(_plain_name, (name, name.replace(" ", ""), *name.split(" "))))


def name_for_model(metadata: Mapping[str, object]) -> str:
    """The speaker's name that a chat model may be told: without a colon, which would end it, and never a role."""
    name = name_in(metadata)
    return _name_unless_role(name) if name else ""


@memoized(FIGURE_GROWTH)
def _name_unless_role(name: str) -> str:
    plain = " ".join(_COLONS.sub(" ", name).split())
    return "" if names_a_role(plain) or _plain_name(plain) in _PROVIDERS_ROLES else plain


def with_name_for_model(role: str, text: str, metadata: Mapping[str, object]) -> str:
    """A user's message with its speaker's name. A model's messages get none: it would begin its next ones likewise."""
    return with_speaker_name(name_for_model(metadata), text) if role == "user" else text


def _plain_name(name: str) -> str:
    return "".join(map(plain_letters, name))


_ROLE_NAMES: Final = frozenset(
    _plain_name(name)
    for role in get_args(Role)
    for name in (role, *(catalogue.word("context.role", role) for catalogue in CATALOGUES.values()))
)


def role_of(label: str) -> str | None:
    """The role that a label (``"Assistant: "``) names in any language; ``None`` for the name of a person."""
    return _LABELLED.get(label.removesuffix(": "))


_LABELLED: Final[Mapping[str, str]] = {name: role for roles in _ROLES.values() for role, name in roles}
