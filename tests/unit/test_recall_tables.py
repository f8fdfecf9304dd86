"""Tables of related words are well formed: each line asks for something and answers it."""

from __future__ import annotations

import pytest

from app.core.text.languages.loading import languages
from app.core.text.words import stems

TABLES = {one.code: {key: text for key, text in one.related if text} for one in languages() if one.related.kinds}


def groups(name: str) -> list[str]:
    """The groups of kinds; a line that begins with a blank goes on."""
    found: list[str] = []
    for line in name.strip().split("\n"):
        if line.startswith(" "):
            found[-1] += line
        else:
            found.append(line)
    return found


@pytest.mark.parametrize("name", sorted(TABLES))
def test_kinds_ask_and_are_answered(name: str) -> None:
    table = TABLES[name]
    assert {"kinds", "forms"} == table.keys()
    for group in groups(table["kinds"]):
        asking, colon, kind = group.partition(":")
        assert colon, group
        assert ":" not in kind, group
        assert stems(asking), group
        assert len(set(stems(kind))) > 1, group


@pytest.mark.parametrize("name", sorted(TABLES))
def test_forms_are_of_several_words(name: str) -> None:
    for group in TABLES[name]["forms"].split("/"):
        assert len(group.split()) > 1, group
