"""Where settings come from, which of them wins, and what is said of one that there is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.preflight import CannotStartError, check_models, read_settings
from app.setting_files import unknown_variables
from app.settings import Settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("PORT", "HOST", "GOOGLE_API_KEY", "OPENAI_API_KEY", "THROUGHLINE_LOG_LEVEL", "THROUGHLINE_CHAT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def said_of(folder: Path, **files: str) -> str:
    """What a person is told who starts over these files."""
    for name, text in files.items():
        (folder / {"env": ".env", "yaml": "throughline.yaml"}[name]).write_text(text)
    with pytest.raises(CannotStartError) as raised:
        read_settings()
    line = str(raised.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot: 8130\n", "throughline.yaml: prot is no setting (is port meant?). Correct or remove it."),
        ("chat_modle: offline\nport: 1\n", "chat_modle is no setting (is chat_model meant?)"),
        ("zebra: 1\n", "zebra is no setting. Correct or remove it."),
        ("port: [1\n", "throughline.yaml is no YAML at line 2, column 1: expected"),
        ("- port\n", "throughline.yaml must hold lines of the form `name: value`."),
        ("port\n", "throughline.yaml must hold lines of the form `name: value`."),
        ("port: abc\n", "PORT: Input should be a valid integer"),
        ("log_level: LOUD\n", "log_level: Input should be 'DEBUG'"),
        ("runner: {compaction: {max_token: 5}}\n", "runner.compaction.max_token"),
        ("runner: {compactoin: {max_tokens: 5}}\n", "compactoin is no setting (is compaction meant?)"),
        ("port: 8000\nhost: 127.0.0.1\nport: 8123\n", "throughline.yaml: port is given twice. Remove one."),
        ("data_dir: ~nobody-of-that-name/data\n", "is in the home folder of nobody here"),
    ],
)
def test_a_wrong_line_of_the_settings_file_is_named(folder: Path, text: str, said: str) -> None:
    assert said in said_of(folder, yaml=text)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_file_in_another_encoding_is_named(folder: Path, encoding: str) -> None:
    (folder / "throughline.yaml").write_text("# é\nport: 8000\n", encoding=encoding)
    with pytest.raises(CannotStartError) as raised:
        read_settings()
    assert "throughline.yaml is not in UTF-8" in str(raised.value)


def test_what_else_stands_in_the_runner_section_is_not_ours(folder: Path) -> None:
    (folder / "throughline.yaml").write_text("runner: {type: pi, compaction: {max_tokens: 5000}}\n")
    assert read_settings().runner.compaction.max_tokens == 5_000


def test_the_data_folder_may_be_at_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder / "me"))
    (folder / "throughline.yaml").write_text("data_dir: ~/talks\n")
    assert read_settings().data_dir == folder / "me" / "talks"


def test_a_misspelled_variable_of_dotenv_is_named(folder: Path) -> None:
    line = said_of(folder, env="THROUGHLINE_CHAT_MODL=offline\n")
    assert line == (
        ".env: THROUGHLINE_CHAT_MODL is no setting (is THROUGHLINE_CHAT_MODEL meant?). Correct or remove it."
    )


def test_dotenv_may_hold_what_other_programs_read(folder: Path) -> None:
    (folder / ".env").write_text("POSTGRES_PASSWORD=x\nANTHROPIC_API_KEY=y\nTHROUGHLINE_API_KEY=z\nPORT=8111\n")
    assert read_settings().port == 8111


def test_the_environment_wins_over_dotenv_and_dotenv_over_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "throughline.yaml").write_text("port: 8101\nlog_level: warning\nchat_model: openai:from-yaml\n")
    assert (read_settings().port, read_settings().log_level) == (8101, "WARNING")
    (folder / ".env").write_text("PORT=8102\nTHROUGHLINE_LOG_LEVEL=error\n")
    assert (read_settings().port, read_settings().log_level) == (8102, "ERROR")
    monkeypatch.setenv("PORT", "8103")
    assert (read_settings().port, read_settings().log_level) == (8103, "ERROR")
    assert read_settings().chat_model == "openai:from-yaml"


def test_the_file_takes_every_setting_in_lower_case_without_the_prefix(folder: Path) -> None:
    (folder / "throughline.yaml").write_text("google_gemini_base_url: http://localhost:1\ngoogle_api_key: secret\n")
    settings = read_settings()
    assert settings.google_base_url == "http://localhost:1"
    assert settings.google_api_key is not None


def test_a_variable_that_resembles_a_setting_is_mentioned_and_a_stranger_is_not() -> None:
    environment = {
        "THROUGHLINE_COMPACTON_MODEL": "x",
        "THROUGHLINE_API_KEY": "k",
        "THROUGHLINE_SERVICE_HOST": "10.0.0.1",
        "THROUGHLINE_PORT_8000_TCP": "tcp://10.0.0.1:8000",
    }
    assert unknown_variables(Settings, environment) == [
        "THROUGHLINE_COMPACTON_MODEL is no setting and is not read (is THROUGHLINE_COMPACTION_MODEL meant?)."
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gemeni:x", "THROUGHLINE_CHAT_MODEL (gemeni:x): There is no model provider 'gemeni'."),
        ("openai:gpt-5-mini", "Models of openai need a key: set OPENAI_API_KEY"),
        ("gpt-5-mini", "A model is named 'offline' or 'provider:model'"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_built_stops_the_start(name: str, said: str) -> None:
    with pytest.raises(CannotStartError) as raised:
        check_models(Settings(chat_model=name))
    assert said in str(raised.value)


def test_the_offline_model_and_a_model_with_a_key_may_start() -> None:
    check_models(Settings())
    check_models(Settings(GOOGLE_API_KEY="k"))
