"""No module of the core holds words of a natural language: they stand in the files of languages.

What a module may hold all the same is listed with how much of it there is, and why. A number may only become smaller:
a module that holds fewer words than its row says fails too, until the row says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import app.core
from app.core.text.languages.loading import languages

ROOT: Final = Path(app.core.__path__[0])
FUNCTION_WORDS: Final = frozenset(
    word for one in languages() for word in one.words.function if len(word) > 1 and word.isascii() and word.isalpha()
)
MIN_FUNCTION_WORDS: Final = 3
"""The least function words that make a literal a list of words; one or two may be names ("on", "off")."""
RANGE: Final = re.compile(r"\S-\S|\\[a-zA-Z]")
"""A range of a character class, which is not a word, or an escape that stands for a class."""
WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
LISTED: Final = re.compile(r"(?<![\w ])[a-z'’ ]+(?=\|)|(?<=\|)[a-z'’ ]+(?![\w ])", re.IGNORECASE)
"""An alternative of a pattern that consists of plain words."""


def other_letters(text: str) -> list[str]:
    """Words that are not in ASCII; a single letter with no other next to it counts too."""
    return [word for word in WORD.findall(RANGE.sub(" ", text)) if not word.isascii() and any(map(str.isalpha, word))]


def alternatives(text: str) -> list[str]:
    """Function words that are alternatives of a pattern, or that begin one."""
    found = (WORD.search(one) for one in LISTED.findall(re.sub(r"\\[a-zA-Z]|\(\?[:=!]|[()?]", " ", text)))
    return [word for match in found if match and (word := match.group().lower()) in FUNCTION_WORDS]


def words_of_list(texts: list[str]) -> list[str]:
    """Function words among short texts."""
    return [text for text in texts if text.lower() in FUNCTION_WORDS]


def words_in(source: str) -> list[str]:
    """The words of natural languages in a module, without docstrings and messages for people."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [word for node in ast.walk(tree) if id(node) not in told for word in _words_at(node)]


def _words_at(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from other_letters(node.value)
        yield from _enough(alternatives(node.value))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        yield from _enough(words_of_list(_text(node.func.value).split()))
    elif isinstance(node, (ast.Set, ast.Tuple, ast.List)):
        yield from _enough(words_of_list([_text(one) for one in node.elts]))


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _enough(found: list[str]) -> list[str]:
    return found if len(set(found)) >= MIN_FUNCTION_WORDS else []


def counted() -> dict[str, int]:
    """The number of words in each module that has any."""
    found = {path.relative_to(ROOT).as_posix(): words_in(path.read_text("utf-8")) for path in ROOT.rglob("*.py")}
    return {name: len(words) for name, words in found.items() if words}


ROWS: Final[dict[str, tuple[int, str]]] = {
    "continuity/statements.py": (1, "Chinese numerals"),
    "model/policies/goals.py": (1, "an apostrophe"),
    "model/secret_names.py": (
        220,
        "what secrets are called: one pattern in which the words of all languages depend on each other",
    ),
    "retrieval/question_completion.py": (3, "an alphabet, and where Chinese begins"),
    "segments/segment_ids.py": (3, "an apostrophe, letters that show nothing"),
    "segments/topics.py": (3, "marks within words of Japanese and Chinese; a name of a section"),
    "text/amounts.py": (2, "a Chinese half, and where Chinese ends"),
    "text/days.py": (1, "a Chinese sign between two days"),
    "text/escaping.py": (3, "letters that look like others"),
    "text/hours.py": (5, "how times of day are told in Russian: each word has a part of its own"),
    "text/identifiers.py": (11, "alphabets, Chinese dates, endings of files"),
    "text/language.py": (11, "letters by which languages of one script are told apart; words of programming languages"),
    "text/numerals.py": (10, "Chinese numbers, days and hours: how they are built is code"),
    "text/plain_text.py": (23, "signs that are written in two ways"),
    "text/plain_view.py": (4, "letters that look like others, and that show nothing"),
    "text/relative.py": (1, "where Chinese begins"),
    "text/required_literals.py": (2, "letters whose small form is another letter"),
    "text/scanner.py": (
        55,
        "Chinese numbers, days and hours: how they are built is code; endings of files and domains",
    ),
    "text/scripts.py": (2, "the letters of each script, and the stroke between those of Arabic"),
    "text/message_escaping.py": (2, "an apostrophe, a colon that is a letter"),
    "text/shapes.py": (25, "Chinese numbers, days and hours: how they are built is code"),
    "text/tables.py": (7, "how Russian halves an hour and begins one word with a number"),
    "text/token_counts.py": (1, "scripts"),
    "text/token_prices.py": (56, "what single letters cost in tokens"),
    "text/values.py": (1, "where Chinese ends"),
    "text/vocabulary.py": (1, "Chinese numbers, days and hours: how they are built is code"),
    "text/words.py": (4, "Russian stems: which words are folded so, and the endings before all others"),
    "validation/digest_checks.py": (1, "a letter in its other widths"),
    "validation/health.py": (6, "errors as servers write them, whatever the language"),
}
"""For each module, the number of its words, and the reason."""


def test_no_module_holds_other_words_than_those_that_are_listed() -> None:
    assert counted() == {name: number for name, (number, _) in ROWS.items()}, "a number may only become smaller"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (r'_DONE = compiled(r"\b(?:done|готов\w*)\b")', ["готов"]),
        (r'_LINK = compiled(r",\s(?:and|but|so|while)\s")', ["and", "but", "so", "while"]),
        (r'_OWN = compiled(r"\b(?:we|our|my\b|nobody)")', ["we", "our", "my"]),
        ('_NEGATIONS = frozenset("no not only none".split())', ["no", "not", "only"]),
        ('_NEGATIONS = {"not", "only", "nor"}', ["not", "only", "nor"]),
        ('_DONE = "完成|结束"', ["完成", "结束"]),
    ],
)
def test_control_planted_words_are_found(source: str, found: list[str]) -> None:
    assert words_in(source) == found


@pytest.mark.parametrize(
    "source",
    [
        '"""What is not done, and why: готово."""\n_KINDS = ("open", "closed")',
        'raise ValueError("there is no such key, or the file is not a language")',
        r'_NAME = compiled(r"[A-Z][a-zа-я]{1,30}|[\u3400-\u9fff]+")',
        '_MODES = ("off", "on", "auto")',
    ],
)
def test_control_what_is_no_list_of_words_is_not_found(source: str) -> None:
    assert words_in(source) == []
