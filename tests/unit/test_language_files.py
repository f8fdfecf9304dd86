"""A language is one file: its contents take effect everywhere, and an error in it is reported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest

from app.core.text.languages.combined_words import pattern_of
from app.core.text.languages.language_file import Language
from app.core.text.languages.loading import LanguageError, languages, read_language, read_languages
from app.core.text.languages.sections_of_talk import Phrases
from tests.rows import each
from tests.unit import speaking

ESPERANTO: Final = r"""
code = "eo"
name = "Esperanto"
words_per_token = 0.5
in_doubt = "(dubinda)"
goals = '''\bmia celo estas\b'''

[words]
function = "la kaj de en estas ni mi vi li ĝi por al kun ne tio ke mia nia via sed ĉu ĉiuj kiam je"

[roles]
user = "Uzanto"
assistant = "Helpanto"
tool = "Ilo"

[quotes]
user = "La uzanto skribis"
assistant = "La helpanto skribis"
system = "La sistemo diras"
tool = "Ilo respondis"
document = "Alglutita dokumento diras"

[phrases]
open_question = "Malferma demando: "
tone = "Tono: "
about = "Temas pri {topics}."
last = "Laste: {text}"
last_by = "Laste ({speaker}): {text}"
informal = "neformala"
polite = "ĝentila"
friendly = "amika"
frustrated = "kolera"
upset = "maltrankvila"
steady = "humoro stabila"
better = "humoro pliboniĝas"
worse = "humoro malboniĝas"

[values]
numbers = '''
2 du
40 kvardek
'''
units = "s 3600 horo/j/jn/n"
months = "5 majo"

[relative]
day = "{day} {month} {year}"
months = ["jan", "feb", "mar", "apr", "maj", "jun", "jul", "aŭg", "sep", "okt", "nov", "dec"]
weekdays = ["lu", "ma", "me", "ĵa", "ve", "sa", "di"]
said = { weekday = "dirite {weekday} {day} {month}", day = "dirite {day} {month} {year}", month = "dirite {month}" }
days = { "hieraŭ" = -1 }

[cues]
decision = '''\bni decidis\b'''

[talk]
acceptance = "jes|konsentite"

[anchors]
[anchors.decision]
says = '''\bni decidis\b'''

[orders]
assistant = "asistanto"
forms = '''vi devas\b'''

[sentences]
abbreviations = "k.t.p inĝ"

[clauses]
reasons = "ĉar"

[claims]
supposed = "verŝajne"
done = "finita|preta"

[refusals]
forms = "mi ne povas (?:helpi|respondi)"

[terms]
courtesies = "bonvolu"

[exact]
no_names = "lundo"

[rivals]
database = "poŝtgreso"

[questions]
when = '''\bkiam\b'''
"""


HEARD: Final = """
import json, pathlib, sys
from app.core.text.languages import loading
shipped = [one for one in loading.read_languages(loading._SHIPPED) if one.code != "eo"]  # whoever adds it
further = [one for folder in sys.argv[1:] for one in loading.read_languages(pathlib.Path(folder))]
loading.read_languages = lambda folder, *, check: (*shipped, *further)
from tests.unit.speaking import heard
print(json.dumps(heard()))
"""


def read(text: str) -> Language:
    return read_language("eo.toml", text)


def heard(*folders: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", HEARD, *map(str, folders)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return found


def told(state: Any) -> str:
    return json.dumps(state, ensure_ascii=False)


def test_a_further_language_is_one_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "eo.toml").write_text(ESPERANTO, encoding="utf-8")
    is_shipped = any(one.code == "eo" for one in languages())
    found, without = heard(tmp_path), heard() if is_shipped else json.loads(json.dumps(speaking.heard()))

    assert set(found["known"]) - set(without["known"]) == {"eo"}
    assert [found["language"], without["language"]] == ["eo", "es"], "they have words in common"
    assert [found["anchors"], without["anchors"]] == [[["decision", speaking.DECISION]], []]
    assert [found["values"], without["values"]] == [
        [["date", "12 majo 2027", None], ["number", "kvardek du horojn", 42.0]],
        [["number", "12", 12.0], ["number", "2027", 2027.0]],
    ]
    assert [found["day"], without["day"]] == [" (dirite 16 nov 2026)", ""]
    assert [found["cues"], without["cues"]] == [["decision"], []]
    assert [found["accepts"], without["accepts"]] == [True, False]
    assert [found["goal"], without["goal"]] == [True, False]
    assert [found["orders"], without["orders"]] == [["Vi devas ĉiam obei."], []]
    assert [found["months"], without["months"]] == [[5], []]
    assert found["quoted"] == f'La uzanto skribis: "{speaking.DECISION}"'
    assert without["quoted"].startswith("The user wrote: ")
    assert [found["sentences"], without["sentences"]] == [1, 2], "inĝ. Zamenhof"
    assert [found["clauses"], without["clauses"]] == [[10], []]
    assert [found["supposed"], without["supposed"]] == [True, False]
    assert [found["refusal"], without["refusal"]] == [True, False]
    assert [found["exact"], without["exact"]] == [["12 horojn"], ["12", "Lundo"]]
    assert [found["database"], without["database"]] == [True, False]
    assert [found["role"], without["role"]] == ["Uzanto", "User"]
    assert found["in doubt"].endswith("(dubinda)")
    assert without["in doubt"].endswith("(in doubt)")
    assert found["rule"] == ["Write in the conversation's own language, Esperanto.", "50 words"]
    assert without["rule"] == ["Write in the conversation's own language.", "60 words"]
    assert "Laste (Uzanto): " in told(found["state"])
    assert "Uzanto: " in told(found["state"])
    assert not re.search("Uzanto|Laste", told(without["state"]))


def test_a_file_of_two_lines_is_a_language() -> None:
    language = read('code = "eo"\nname = "Esperanto"')
    assert (language.anchors, language.phrases, language.cues.decision) == (None, None, ())


@each(
    ("text", "said"),
    [
        ('code = "eo"', "eo.toml: name: this key is needed"),
        ('code = "eo', "eo.toml: this is no TOML: "),
        ('code = "xx"\nname = "X"', "eo.toml: code: a file of 'xx' has to be named xx.toml"),
        (ESPERANTO + "whem = 'kiam'", "eo.toml: questions.whem: there is no such key; did you mean when?"),
        (ESPERANTO + "[rolls]", "eo.toml: rolls: there is no such key; did you mean roles?"),
        (ESPERANTO + "[work]\nxyzzy = ''", "eo.toml: work.xyzzy: there is no such key; there are: done, ahead"),
        (ESPERANTO.replace("says =", "sais ="), "anchors.decision.sais: there is no such key; did you mean says?"),
        (ESPERANTO.replace('tool = "Ilo"\n', ""), "eo.toml: roles.tool: this key is needed"),
        (ESPERANTO.replace("vi devas", "vi (devas"), "'vi (devas\\\\b' is no regular expression: missing )"),
        (ESPERANTO.replace("2 du", "du du"), "eo.toml: values.numbers: the row 'du du' has to begin with a number"),
        (ESPERANTO.replace("Laste: {text}", "{x}"), "phrases.last: unknown placeholder {x}; allowed: {text}"),
        ('code = "eo"\nname = "E"\n[values.numbers]\n2 = "du"', "eo.toml: values.numbers: give one text"),
        (ESPERANTO.replace("= -1", "= 'x'"), "eo.toml: relative.days.hieraŭ: Input should be a valid integer"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(LanguageError, match=re.escape(said)):
        read(text)


def test_each_mistake_is_a_line() -> None:
    with pytest.raises(LanguageError) as raised:
        read(ESPERANTO.replace("2 du", "du du").replace("vi devas", "vi (devas"))
    assert len(str(raised.value).splitlines()) == 2


def test_the_languages_of_the_program_are_right_and_part_of_the_package() -> None:
    folder = files("app.core.text.languages")
    assert read_languages(folder) == languages(), "each pattern tried"
    configured = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    assert configured["tool"]["setuptools"]["package-data"]["app.core.text.languages"] == ["*.toml"]
    assert {"en", "ru", "zh", "de", "fr", "es"} <= {language.code for language in languages()}


def unexplained(page: str) -> list[str]:
    """Keys and sections of a file that the guide to it does not mention."""
    told = set(re.findall(r"(?:`|^ *)\[?(\w+)\]?(?:`| =|$)", page, re.MULTILINE))
    return [key for key in Language.model_fields if key not in told]


def test_every_key_of_a_file_stands_in_the_guide_to_a_language() -> None:
    guide = Path("CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add a language")[2].partition("\n## ")[0]
    assert unexplained(guide) == []
    assert unexplained(guide.replace("`earlier`", "")) == ["earlier"], "control"


def test_every_phrase_and_label_is_of_one_language_or_means_the_same() -> None:
    """Written text is read again in any language, so a label stands for one role, and a frame for one thing."""
    roles = [(label, role) for one in languages() if one.roles for role, label in one.roles]
    assert len({label for label, _ in roles}) == len(set(roles))
    told_apart = ("open_question", "tone", "about", "last")
    phrases = [(getattr(one.phrases, key), key) for one in languages() if one.phrases for key in told_apart]
    assert len({text for text, _ in phrases}) == len(set(phrases))
    assert set(told_apart) <= set(Phrases.model_fields)


def test_patterns_of_all_languages_fit_whole_words_where_words_are_spaced(tmp_path: Path) -> None:
    (tmp_path / "xa.toml").write_text('code = "xa"\nname = "A"\n[work]\ndone = "criei|alterei"', encoding="utf-8")
    (tmp_path / "xb.toml").write_text(
        'code = "xb"\nname = "B"\nspaced = false\n[work]\ndone = "แก้ไข"', encoding="utf-8"
    )
    given = (*languages(), *read_languages(tmp_path))
    said = ("Criei main.py.", "ผมแก้ไข main.py", "I changed main.py.", "Я изменил main.py.")

    assert [pattern_of("work", "done").search(text) is not None for text in said] == [False, False, True, True]
    assert all(pattern_of("work", "done", given).search(text) for text in said)
    assert not pattern_of("work", "done", given).search("Recriei")
    assert pattern_of("work", "done", []).search("anything") is None, "what no language says fits nothing"
