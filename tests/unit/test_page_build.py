"""The shipped files of the page, checked by reading them: Node is not needed."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

import pytest
from babel import Locale

from app.core.model.policies.policy import CompactionPolicy
from app.core.text.localization.catalogue import CATALOGUES
from app.http import event_schemas
from app.http.browser.archive import page_files, policy_of
from tests.servers import ROOT

WEB: Final = ROOT / "web"
ARCHIVE: Final = ROOT / "app" / "ui" / "ui.zip"
TEXTS: Final = WEB / "src" / "i18n" / "texts"
MAX_SCRIPT_BYTES: Final = 300_000
"""The most compressed bytes of script on the chat page."""
FREE: Final = re.compile(r"MIT|Apache-2\.0|ISC|BSD|0BSD|Unlicense|CC0-1\.0|BlueOak|Python-2\.0|WTFPL|CC-BY-4\.0")


def script(name: str) -> ModuleType:
    """A module of ``web/scripts``."""
    spec = importlib.util.spec_from_file_location(f"web_{name}", WEB / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def recorded(archive: Path) -> str:
    with zipfile.ZipFile(archive) as opened:
        return str(json.loads(opened.read("build.json"))["sources"])


def test_the_page_is_as_new_as_its_sources() -> None:
    assert recorded(ARCHIVE) == script("sources").fingerprint(), "web/ has changed since the page was built: `make ui`"


def test_control_a_changed_source_is_noticed(tmp_path: Path) -> None:
    sources = script("sources")
    for name in sources.sources():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(WEB / name, target)
    assert sources.fingerprint(tmp_path) == sources.fingerprint()
    (tmp_path / "src" / "app" / "page.tsx").write_text("changed", encoding="utf-8")
    assert sources.fingerprint(tmp_path) != sources.fingerprint()


def test_the_page_names_the_licences_of_what_it_is_made_of() -> None:
    told = page_files()["THIRD-PARTY-LICENSES.txt"].content.decode()
    for name in ("react", "react-dom", "next", "radix-ui", "streamdown", "recharts", "lucide-react", "next-themes"):
        assert re.search(rf"^{name} \d", told, re.MULTILINE), name
    named = re.findall(r"^\S+ \d+\.\d+\S* \((.+)\)$", told, re.MULTILINE)
    assert len(named) > 100
    assert not [licence for licence in named if not FREE.search(licence)]


def test_the_lock_names_no_package_host_and_pins_what_runs() -> None:
    text = (WEB / "package-lock.json").read_text(encoding="utf-8")
    lock = json.loads(text)["packages"]
    assert not re.search(r'"resolved"|://[^"]*\.tgz', text)
    # Also for other machines, where `npm ci` would install whatever it is sent. A bundle has one hash for all of it.
    assert not [path for path, one in lock.items() if path and "integrity" not in one and "inBundle" not in one]
    named = {path.rpartition("node_modules/")[2] for path in lock}
    assert {name for one in lock.values() for name in one.get("optionalDependencies", ())} <= named
    wanted = json.loads((WEB / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert {name: lock[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def differences(told: Mapping[str, Any], english: Mapping[str, Any], plurals: AbstractSet[str]) -> list[str]:
    """Keys whose texts in a language are missing, or have other placeholders or plural forms than they should."""
    places = re.compile(r"\{(\w+)\}")

    def fits(key: str) -> bool:
        forms, own = (texts.get(key, {}) for texts in (told, english))
        if isinstance(own, dict) != isinstance(forms, dict) or (isinstance(forms, dict) and forms.keys() != plurals):
            return False
        wanted = set(places.findall(own["other"] if isinstance(own, dict) else own))
        each = forms.values() if isinstance(forms, dict) else [forms]
        return all(set(places.findall(form)) == wanted for form in each)

    return sorted({key for key in english if not fits(key)} | (told.keys() - english.keys()))


def test_all_languages_say_the_same_things() -> None:
    texts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(TEXTS.glob("*.json"))}
    names = re.search(r"LANGUAGE_NAMES = \{(.*)\}", (WEB / "src/i18n/translator.ts").read_text(encoding="utf-8"))
    assert names
    assert sorted(re.findall(r"(\w+):", names[1])) == list(texts)
    english = texts.pop("en")
    assert len(english) > 200
    counted = next(key for key, text in english.items() if isinstance(text, dict))
    for language, told in texts.items():
        plurals = Locale(language).plural_form.tags | {"other"}
        assert differences(told, english, plurals) == [], language
        assert differences({**told, counted: "one form"}, english, plurals) == [counted], "control"


def test_the_services_words_are_those_of_its_catalogues() -> None:
    catalogues = script("catalogues")
    kept = {path.stem: path.read_text(encoding="utf-8") for path in catalogues.FOLDER.glob("*.json")}
    written = {language: catalogues.dumped(catalogue) for language, catalogue in CATALOGUES.items()}
    assert kept == written, "`python web/scripts/catalogues.py` writes them"


def test_the_timeline_has_words_for_every_event_of_a_conversation() -> None:
    schemas = event_schemas.EventFields.__subclasses__()
    kinds = {kind for one in schemas for kind in get_args(one.model_fields["type"].annotation)}
    assert {"message.created", "compaction.applied", "conversation.released"} <= kinds
    told = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
    keys = {f"event_{kind.replace('.', '_')}" for kind in kinds}
    assert {key for key in told if key.startswith("event_")} == keys


def test_the_settings_explain_every_field_of_a_policy() -> None:
    source = (WEB / "src" / "views" / "policy.ts").read_text(encoding="utf-8")
    listed = re.search(r"POLICY_FIELDS = \[(.*?)\]", source, re.DOTALL)
    assert listed
    assert sorted(re.findall(r"'(\w+)'", listed[1])) == sorted(CompactionPolicy.model_fields)


def test_a_page_names_the_inline_scripts_that_it_was_built_with() -> None:
    html = page_files()["index.html"]
    assert html.policy is not None
    assert "'unsafe-inline'" not in html.policy.split("script-src")[1]
    assert html.policy.count("'sha256-") == len(set(re.findall(rb"<script[^>]*>([^<]+)</script>", html.content)))
    changed = policy_of(html.content.decode().replace("</body>", "<script>alert(1)</script></body>"))
    assert changed.count("'sha256-") == html.policy.count("'sha256-") + 1


def test_what_the_chat_page_begins_with_is_small() -> None:
    files = page_files()
    names = set(re.findall(rb'<script src="/ui/([^"]+)" async', files["index.html"].content))
    sizes = {name.decode(): len(gzip.compress(files[name.decode()].content, 9, mtime=0)) for name in names}
    assert len(sizes) > 5
    # The texts of one language are loaded later.
    assert sum(sizes.values()) < MAX_SCRIPT_BYTES - 11_500, sizes


def test_an_installation_without_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.http.browser.archive.ARCHIVE_NAME", "absent.zip")
    page_files.cache_clear()
    try:
        assert page_files() == {}
    finally:
        page_files.cache_clear()
