"""Where settings come from, which of them takes precedence, and the message about an unknown one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs
from typer.testing import CliRunner

from app.cli import app
from app.devserver.configured import read_settings
from app.devserver.errors import CannotStartError
from app.devserver.preflight import check_models
from app.process_settings import settings_of_process
from app.providers.other_providers import COMMON_KINDS
from app.setting_files import misnamed_keys, unknown_variables
from app.settings import Settings
from tests.chosen_settings import chosen_settings
from tests.corpus import assert_values, corpus, holds


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("PORT", "HOST", "GOOGLE_API_KEY", "OPENAI_API_KEY", "THROUGHLINE_LOG_LEVEL", "THROUGHLINE_CHAT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def said_of(folder: Path, **files: str) -> str:
    """The message to a person who starts with these files."""
    for name, text in files.items():
        (folder / {"env": ".env", "yaml": "throughline.yaml"}[name]).write_text(text)
    with pytest.raises(CannotStartError) as raised:
        read_settings()
    line = str(raised.value)
    assert "\n" not in line
    return line


def test_a_wrong_line_of_the_settings_file_is_named(folder: Path) -> None:
    assert_values(corpus("settings_faults"), lambda text: said_of(folder, yaml=text), agrees=holds)


def test_a_variable_that_holds_no_json_is_named_with_its_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THROUGHLINE_PRESETS", "{bad")
    said = said_of(folder)
    assert said.startswith("THROUGHLINE_PRESETS is no JSON: ")
    assert said.endswith(" at column 2. It is easier to write in throughline.yaml.")


@pytest.mark.parametrize(
    "address", ["abc", "localhost:11434/v1", "http://", "http://a:b/v1", "http://[::1/v1", "me:pw@a"]
)
@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"])
def test_what_is_no_address_of_a_model_server_stops_the_start(folder: Path, name: str, address: str) -> None:
    line = said_of(folder, env=f"{name}={address}\n")
    assert f"{name}: no address of a server: write it with its scheme, as http://localhost:11434/v1" in line
    assert "pw" not in line


@pytest.mark.parametrize(
    "address",
    ["valkey", "http://:pw@a", "redis://:pw/x@a:6379/0", "redis://:pw#x@a/0", "redis://:pw?x@a", "redis://a/pw"],
)
def test_what_is_no_address_of_a_redis_stops_the_start_without_its_password(folder: Path, address: str) -> None:
    line = said_of(folder, env=f"REDIS_URL='{address}'\n")
    assert "REDIS_URL: no address of a Redis: write it as redis://:password@host:6379/0" in line
    assert "pw" not in line


@pytest.mark.parametrize(
    "address",
    ["", "redis://a/", "redis://:p%2Fw@[::1]:6379/15", "rediss://a:1/0?ssl_ca_certs=/x.pem", "unix:///x.s?db=2"],
)
def test_an_address_of_a_redis_is_kept(folder: Path, address: str) -> None:
    (folder / ".env").write_text(f"REDIS_URL='{address}'\n")
    assert (read_settings().redis_url or "") == address


@pytest.mark.parametrize("address", ["", "http://localhost:11434/v1", "https://[::1]:8443", "HTTP://models"])
def test_an_address_of_a_model_server_is_kept(folder: Path, address: str) -> None:
    (folder / ".env").write_text(f"OPENAI_BASE_URL={address}\n")
    assert (read_settings().openai_base_url or "") == address


def test_a_preset_that_does_not_exist_is_named_with_its_setting(folder: Path) -> None:
    line = said_of(folder, env="THROUGHLINE_DEFAULT_PRESET=semantics\n")
    said = "Settings that cannot be used: THROUGHLINE_DEFAULT_PRESET: unknown preset 'semantics'; known: semantic,"
    assert line.startswith(said)


def test_a_name_without_a_value_is_told_how_to_get_one(folder: Path) -> None:
    said = said_of(folder, env="GOOGLE_API_KEY\nOF_ANOTHER_PROGRAM\nTHROUGHLINE_CHAT_MODEL\n")
    names = "GOOGLE_API_KEY, THROUGHLINE_CHAT_MODEL"
    assert said == f".env: {names} has no value: write GOOGLE_API_KEY=…, THROUGHLINE_CHAT_MODEL=…, or remove the line."
    (folder / ".env").write_text("GOOGLE_API_KEY=\nOF_ANOTHER_PROGRAM\n")
    assert read_settings().port == 8000, "the control: an empty value is one"


def test_a_line_of_dotenv_that_cannot_be_read_is_named_by_its_number(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = said_of(folder, env='PORT=8001\n\n\nOTHER="secret\nexport HOST=::1\nname: value\n')
    assert said == ".env: lines 4, 6 cannot be read: write NAME=value, and close each quotation mark."
    said = said_of(folder, env="PORT=8001\nname value # more\n")
    assert said == ".env: line 2 cannot be read: write NAME=value, and close each quotation mark."
    assert caplog.messages == [], "the library says nothing of its own"
    (folder / ".env").write_text('PORT=8001\n\n# a word\nOTHER="two\nlines"\nexport HOST=::1\n')
    assert read_settings().host == "::1", "the control: what can be read is taken"


@pytest.mark.parametrize("name", ["throughline.yaml", ".env"])
@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_file_in_another_encoding_is_named(folder: Path, name: str, encoding: str) -> None:
    (folder / name).write_text("# é\n", encoding=encoding)
    with pytest.raises(CannotStartError) as raised:
        read_settings()
    assert f"{name} is not in UTF-8: save it anew as UTF-8." in str(raised.value)


@pytest.mark.parametrize("name", ["throughline.yaml", ".env"])
def test_what_is_no_file_under_the_name_of_one_stops_the_start(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    assert said_of(folder) == f"{name} is a folder, and settings are read from a file of that name: remove it."
    (folder / name).rmdir()
    (folder / name).symlink_to("gone")
    assert said_of(folder) == f"{name} is a link to a file that there is not: correct or remove it."
    (folder / "gone").touch()
    assert read_settings().port == 8_000, "control: the file that it leads to is read"


def test_a_dotenv_that_may_not_be_read_stops_the_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").touch()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", ".env")

    monkeypatch.setattr("pydantic_settings.sources.providers.dotenv.dotenv_values", refuse)  # root may read everything
    assert said_of(folder) == "The settings cannot be read: [Errno 13] Permission denied: '.env'"


def test_a_device_in_place_of_dotenv_says_nothing(folder: Path) -> None:
    (folder / ".env").symlink_to("/dev/null")
    assert read_settings().port == 8_000


@pytest.mark.parametrize(
    "origin", ["localhost:3000", "http://localhost:3000/", "https://a.example/x", "http://", "a b"]
)
def test_what_no_browser_names_as_its_origin_stops_the_start(folder: Path, origin: str) -> None:
    line = said_of(folder, env=f"THROUGHLINE_CORS_ORIGINS=http://localhost:3000,{origin}\n")
    assert f"THROUGHLINE_CORS_ORIGINS.1: {origin!r} is no origin: write scheme and host, as http://local" in line


def test_origins_as_browsers_name_them(folder: Path) -> None:
    given = "HTTPS://App.Example, http://[::1]:3000 ,chrome-extension://abcdef,*"
    (folder / ".env").write_text(f"THROUGHLINE_CORS_ORIGINS={given}\n")
    origins = ("https://app.example", "http://[::1]:3000", "chrome-extension://abcdef", "*")
    assert read_settings().cors_origins == origins


@pytest.mark.parametrize("name", ["CHAT_TIMEOUT", "COMPACTION_TIMEOUT", "MODEL_PAUSE", "REQUEST_TIMEOUT"])
@pytest.mark.parametrize("seconds", ["inf", "nan", "1e18", "0"])
def test_a_time_without_an_end_stops_the_start(folder: Path, name: str, seconds: str) -> None:
    said = said_of(folder, env=f"THROUGHLINE_{name}_SECONDS={seconds}\n")
    assert said.startswith(f"Settings that cannot be used: THROUGHLINE_{name}_SECONDS: Input should be ")


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


def test_a_variable_that_is_no_setting_is_mentioned_unless_it_is_known_to_belong_to_another_program() -> None:
    environment = {
        "THROUGHLINE_COMPACTON_MODEL": "x",
        "THROUGHLINE_HOME": "/srv/data",
        "THROUGHLINE_MODEL": "openai:x",
        "THROUGHLINE_API_KEY": "k",
        "THROUGHLINE_KEY": "k",
        "THROUGHLINE_URL": "http://localhost:8000",
        "THROUGHLINE_SERVICE_HOST": "10.0.0.1",
        "THROUGHLINE_WEB_SERVICE_PORT_HTTP": "80",
        "THROUGHLINE_WEB_PORT": "tcp://10.0.0.1:80",
        "THROUGHLINE_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "THROUGHLINE_PORT_8000_TCP_ADDR": "10.0.0.1",
    }
    assert unknown_variables(Settings, environment) == [
        "THROUGHLINE_COMPACTON_MODEL is no setting and is not read (is THROUGHLINE_COMPACTION_MODEL meant?).",
        "THROUGHLINE_HOME is no setting and is not read.",
        "THROUGHLINE_MODEL is no setting and is not read (is THROUGHLINE_MODELS meant?).",
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["migrate", "keys list", "backup all.zip", "move-media", "erase-user anna --yes"])
def test_a_command_that_starts_no_service_mentions_it_too(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.databases.configure_logs", lambda _: None)
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
    before = CliRunner().invoke(app, command.split())
    monkeypatch.setenv("THROUGHLINE_CHAT_MODLE", "x")
    done = CliRunner().invoke(app, command.split())
    told = "THROUGHLINE_CHAT_MODLE is no setting and is not read (is THROUGHLINE_CHAT_MODEL meant?).\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", told + before.stderr)
    assert before.stderr.count("\n") == 1, "the control: that there is no database"


@pytest.mark.usefixtures("folder")
def test_what_is_said_not_to_be_read_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "THROUGHLINE_PORT": "tcp://10.0.0.1:8000",  # set by Kubernetes next to a service with our name
        "THROUGHLINE_DATABASE_URL": "postgresql://elsewhere/x",
        "THROUGHLINE_GOOGLE_API_KEY": "k",
    }.items():
        monkeypatch.setenv(name, value)
        assert unknown_variables(Settings, {name: value})
    settings = read_settings()
    assert (settings.port, settings.database_url, settings.google_api_key) == (8000, None, None)

    monkeypatch.setenv("PORT", "8001")
    monkeypatch.setenv("THROUGHLINE_CHAT_MODEL", "offline")
    settings = read_settings()
    assert (settings.port, settings.chat_model) == (8001, "offline"), "the control: what is read still is"


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "GOOGLE_APIKEY"])
def test_a_key_under_another_name_is_mentioned_wherever_it_stands(folder: Path, name: str) -> None:
    told = [f"{name} is not read: name the key GOOGLE_API_KEY."]
    assert misnamed_keys(Settings, {name: "k"}) == told
    (folder / ".env").write_text(f"{name}=k\n")
    assert misnamed_keys(Settings, {}) == told


@pytest.mark.parametrize(
    "environment",
    [
        {"GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "k"},
        {"GOOGLE_MAPS_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"},
        {"GEMINI_API_KEY": ""},
    ],
)
def test_other_programs_keys_are_not_mentioned(environment: dict[str, str]) -> None:
    assert misnamed_keys(Settings, environment) == []


def test_a_model_that_cannot_be_built_stops_the_start() -> None:
    def fault(name: str) -> str:
        with pytest.raises(CannotStartError) as raised:
            check_models(Settings(chat_model=name))
        return str(raised.value)

    assert_values(corpus("model_faults"), fault, agrees=holds)


@pytest.mark.parametrize("kind", COMMON_KINDS)
def test_a_provider_that_an_error_offers_exists(kind: str) -> None:
    with pytest.raises(CannotStartError) as raised:
        check_models(Settings(chat_model=f"{kind}:x"))
    assert "There is no model provider" not in str(raised.value)


def test_a_verifier_that_cannot_be_built_is_named_by_its_setting() -> None:
    with pytest.raises(CannotStartError, match=r"^THROUGHLINE_VERIFIER_MODEL \(gemini-3-pro\)"):
        check_models(Settings(verifier_model="gemini-3-pro"))


def test_the_offline_model_and_a_model_with_a_key_may_start() -> None:
    check_models(Settings())
    check_models(Settings(GOOGLE_API_KEY="k"))


def test_settings_that_tests_share_are_read_anew_in_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_settings(verify="off") is chosen_settings(verify="off")
    assert chosen_settings(tenant_limits={"requests_per_minute": 7}) is not chosen_settings()
    monkeypatch.setenv("THROUGHLINE_SWEEP_SECONDS", "7")
    assert chosen_settings().sweep_seconds == 7
    monkeypatch.undo()
    assert chosen_settings().sweep_seconds != 7


PROCESSES = {
    "what both begin with": ("-c", "from app.process_settings import settings_of_process as read; read()"),
    "api": ("-m", "app.main"),
    "worker": ("-m", "celery", "-A", "worker.celery_app", "worker"),
}


@pytest.mark.daily(1)
@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_that_cannot_start_says_one_line_without_a_secret(process: str, folder: Path) -> None:
    """Under docker-compose, API and worker are started directly, not by ``throughline run``."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "GOOGLE_API_KEY": "AIzaOfNobody",
        "THROUGHLINE_SEALING_KEY": "sealed",
    }
    command = [sys.executable, *PROCESSES[process]]
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "Settings that cannot be used: THROUGHLINE_SEALING_KEY: write at least 16 characters.\n"


def test_an_error_of_the_settings_shows_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-of-nobody")
    monkeypatch.setenv("THROUGHLINE_HEARTBEAT_SECONDS", "8")
    with pytest.raises(ValidationError) as hidden:
        Settings()
    assert "AIza" not in str(hidden.value)
    talkative = type("Talkative", (Settings,), {"model_config": {"hide_input_in_errors": False}})
    with pytest.raises(ValidationError) as shown:
        talkative()
    assert "AIza" in str(shown.value), "the control: by itself the library shows what was given"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ('{"requests_per_minut": 1}', "THROUGHLINE_KEY_LIMITS: requests_per_minut is no setting (is requests_per_minu"),
        ('{"zebra": 1}', "THROUGHLINE_KEY_LIMITS.zebra is no setting."),
        ('{"running_turns": -1}', "THROUGHLINE_KEY_LIMITS.running_turns: Input should be greater than or equal to 0."),
    ],
)
def test_a_wrong_limit_is_named_as_it_was_written(
    limits: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THROUGHLINE_KEY_LIMITS", limits)
    assert said in said_of(folder)
    monkeypatch.setenv("THROUGHLINE_KEY_LIMITS", '{"running_turns": 3}')
    assert read_settings().key_limits.running_turns == 3, "the control: a right one is taken"


def test_what_is_overlooked_is_told_in_the_log_of_a_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[str]:
        with capture_logs() as lines:
            settings_of_process()
        return [line["detail"] for line in lines if line["event"] == "start.setting_not_read"]

    monkeypatch.setattr("app.process_settings.configure_logs", lambda _: None)
    monkeypatch.delenv("THROUGHLINE_EMBEDDED", raising=False)
    assert told() == []
    monkeypatch.setenv("THROUGHLINE_LOGLEVEL", "INFO")
    assert told() == ["THROUGHLINE_LOGLEVEL is no setting and is not read (is THROUGHLINE_LOG_LEVEL meant?)."]
    monkeypatch.setenv("THROUGHLINE_EMBEDDED", "1")
    assert told() == [], "`throughline run` has told it"
