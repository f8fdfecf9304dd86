"""Writes recalled messages and a caller's passages into a context: in fences, grouped by day, in few tokens."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Final, get_args

from app.core.anchors.rendering import escape_served
from app.core.model.conversation import Role
from app.core.reading.labels import names_a_role
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.question import Question
from app.core.retrieval.question_completion import completed_question
from app.core.retrieval.ranking import RecalledMessage
from app.core.text.elements import elements_in, outside
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, Catalogue, catalogue_of
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.patterns import compiled
from app.core.text.sentences import LINE_BREAK
from app.core.text.speakers import label_of, short_name

RECALLED_TAG: Final = "recalled"
PASSAGE_TAG: Final = "passage"
ELEMENTS_BEFORE: Final = (f"<{RECALLED_TAG} ", f"<{PASSAGE_TAG} ")
"""The beginnings of a message with recalled messages or passages before its own text."""
GAP_LINE: Final = "…"
"""The line between two recalled messages of a day where messages in between are left out."""
_CLOSING: Final = f"</{RECALLED_TAG}>"
_ROLES: Final[tuple[Role, ...]] = get_args(Role)
_LONG: Final = compiled(r'<message role="(\w+)"(?: name="[^"\n]*")?(?: part="1")?>\n')
_LONG_END: Final = "\n</message>"


def _attribute_value(text: str) -> str:
    return escape_served(html.escape(" ".join(text.split())))


def _opening_tag(catalogue: Catalogue, of: Role | None = None) -> str:
    role = f' role="{of}"' if of else ""
    return f'<{RECALLED_TAG} of="{_attribute_value(catalogue.text("context.recalled"))}"{role}>'


def _marks_by_role(catalogue: Catalogue) -> dict[str, str]:
    return {role: f"{catalogue.text(f'context.mark.{role}')}: " for role in _ROLES}


_MARKED: Final[Mapping[str, Mapping[str, str]]] = {
    _opening_tag(catalogue, of): {mark.strip(): role for role, mark in _marks_by_role(catalogue).items()}
    for catalogue in CATALOGUES.values()
    for of in (None, *_ROLES)
}
"""The role that each mark means, by the opening tag of each language: what is read back may be in any of them."""
_ELEMENT: Final = compiled(
    rf"(?:(?P<opening>{'|'.join(map(re.escape, _MARKED))})\n(?P<inside>.*?)\n{_CLOSING}"
    rf'|<{PASSAGE_TAG} source="(?P<source>[^"]*)">\n(?P<passage>.*?)\n</{PASSAGE_TAG}>)\n?',
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text that a caller brings along, with its source."""

    text: str
    source: str

    @cached_property
    def element(self) -> str:
        """The passage as an element; kept, since it is weighed and written many times while a context is fitted."""
        source = _attribute_value(self.source)
        return f'<{PASSAGE_TAG} source="{source}">\n{escape_served(self.text)}\n</{PASSAGE_TAG}>'


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The input of recall for one context."""

    question: str
    """The question that messages are recalled for. If it is empty, nothing is recalled: only passages are served."""
    corpus: Corpus
    before: tuple[str, ...] = ()
    """The two messages before the question, which a question of few words refers to."""
    is_explicit: bool = False
    """Whether the client asked with a ``query``: recall may then take nine tenths, whatever the policy's share is."""
    passages: tuple[Passage, ...] = ()
    cosines: Mapping[int, float] = field(default_factory=dict)
    """The cosine of the question's and each message's vectors, by ``seq``; empty: only words decide."""

    @cached_property
    def completed_question(self) -> Question:
        """The question taken apart. It is computed once: to find whom it names, all messages with the name are read."""
        return completed_question(self.question, self.corpus, before=self.before)


def labelled_roles(corpus: Corpus, locale: str = FALLBACK) -> frozenset[str]:
    """The roles whose messages all begin with their speaker's name: their lines need no other mark."""
    if locale not in corpus.labelled_roles:
        corpus.labelled_roles[locale] = _find_labelled_roles(corpus, locale)
    return corpus.labelled_roles[locale]


def _find_labelled_roles(corpus: Corpus, locale: str) -> frozenset[str]:
    marks = tuple(_marks_by_role(catalogue_of(locale)).values())
    unnamed: set[str] = set()
    for source in corpus.sources:
        if source.role not in unnamed and not _begins_with_name(source.text, marks):
            unnamed.add(source.role)
    return frozenset({source.role for source in corpus.sources} - unnamed)


def recalled_element(
    recalled: Sequence[RecalledMessage],
    named_roles: Collection[str] = (),
    locale: str = FALLBACK,
    *,
    role: Role | None = None,
) -> str:
    """The element with recalled messages, in order of ``seq`` under the date of each day; empty without messages.

    * Each message is one line. A line says where messages between two of a day are left out.
    * The name of a speaker (``Source.said_by``) follows the mark of the role, in parentheses.
    * A text with line breaks gets an element of its own, so that no line of it can pass for a message. So does a part
      of a message, whose element says that it is a part.

    Args:
        recalled: The messages.
        named_roles: Roles whose lines begin with the speaker's name already.
        locale: The conversation's locale.
        role: The role of all the messages, if they share one: it is stated once, for the whole element.
    """
    if not recalled:
        return ""
    catalogue = catalogue_of(locale)
    in_order = sorted(recalled, key=lambda one: one.source.seq)
    return "\n".join([_opening_tag(catalogue, role), *_lines(in_order, named_roles, catalogue), _CLOSING])


def passages_element(passages: Sequence[Passage]) -> str:
    """The caller's passages, each with its source."""
    return "\n".join(one.element for one in passages)


def with_elements_before(recalled: str, passages: str, content: str = "") -> str:
    """The elements, followed by the user message's own text."""
    fenced = "\n".join(part for part in (recalled, passages) if part)
    return "\n\n".join(part for part in (fenced, content) if part)


def split_elements(content: str) -> tuple[str, str]:
    """Split into the elements and the user's own text, for the offline responder: inverts ``with_elements_before``."""
    end = 0
    while found := _ELEMENT.match(content, end):
        end = found.end()
    return content[:end], content[end:].removeprefix("\n")


def recalled_in(fenced: str) -> Iterator[tuple[str, str]]:
    """The recalled messages in the elements, each as role and text."""
    found = _ELEMENT.match(fenced)
    if found is None or found["inside"] is None:
        return
    roles = _MARKED[found["opening"]]
    marks = tuple(f"{mark} " for mark in roles)
    long = list(elements_in(found["inside"], _LONG, lambda _: _LONG_END))
    for element in long:
        yield element.opening[1], element.inside
    for line in outside(found["inside"], long).split("\n"):
        mark, text = _mark_and_text(line)
        if mark in roles or _begins_with_name(line, marks):
            yield roles.get(mark, "user"), text if mark in roles else line


def passages_in(fenced: str) -> Iterator[tuple[str, str]]:
    """The caller's passages in the elements, each as source and text; the texts are still escaped."""
    end = 0
    while found := _ELEMENT.match(fenced, end):
        end = found.end()
        if found["passage"] is not None:
            yield html.unescape(found["source"]), found["passage"]


def _lines(recalled: Sequence[RecalledMessage], named_roles: Collection[str], catalogue: Catalogue) -> Iterator[str]:
    marks = {role: "" if role in named_roles else mark for role, mark in _marks_by_role(catalogue).items()}
    before: date | None = None
    seq = 0
    for one in recalled:
        day = one.source.at.date()
        if day != before:
            yield catalogue.date(day, with_year=before is None or before.year != day.year)
        elif one.source.seq - seq > 1:
            yield GAP_LINE
        before, seq = day, one.source.seq
        yield _excerpt_element(one) if one.excerpt else _line(one.source, marks.get(one.source.role, ""))


def _excerpt_element(one: RecalledMessage) -> str:
    return f'<message {_speaker_attributes(one.source)} part="1">\n{escape_served(one.excerpt)}\n</message>'


def _line(source: Source, mark: str) -> str:
    text, has_breaks = _escaped(source.text)
    if has_breaks:
        return f"<message {_speaker_attributes(source)}>\n{text}\n</message>"
    return f"{_mark_with_name(mark, short_name(source.said_by))}{text}"


def _speaker_attributes(source: Source) -> str:
    name = short_name(source.said_by)
    return f'role="{source.role}" name="{_attribute_value(name)}"' if name else f'role="{source.role}"'


def _mark_with_name(mark: str, name: str) -> str:
    return f"{mark.removesuffix(': ')} ({escape_served(name)}): " if mark and name else mark


def _mark_and_text(line: str) -> tuple[str, str]:
    mark, _, text = line.partition(" ")
    if text.startswith("(") and not mark.endswith(":"):
        return f"{mark}:", text.partition("): ")[2]
    return mark, text


@memoized(FIGURE_GROWTH)
def _escaped(text: str) -> tuple[str, bool]:
    # The result is kept, since one text is weighed in several elements.
    escaped = escape_served(text)
    return escaped, LINE_BREAK.search(escaped) is not None


def _begins_with_name(text: str, marks: tuple[str, ...]) -> bool:
    label = label_of(text)
    return label is not None and not text.startswith(marks) and not names_a_role(label.name)
