"""Settings of every process: environment variables first, then ``throughline.yaml``, then defaults."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from app.core.model.embedding import MAX_DIMENSIONS
from app.core.model.errors import PolicyInvalidError, UnknownPresetError
from app.core.model.files import MAX_FILE_BYTES, MAX_FILES_BYTES, MEDIA_BYTES
from app.core.model.model_io import OFFLINE
from app.core.model.policies.operator import OperatorNumbers, operator_numbers
from app.core.model.policies.resolving import DEFAULT_PRESET, preset_named
from app.core.model.retention import Retention
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.core.model.usage_limits import KEY_LIMITS, TENANT_LIMITS, Limits
from app.core.text.patterns import compiled
from app.setting_files import PREFIX, OwnVariables, StrictDotenv, StrictYaml, misspelled

DEFAULT_GEMINI_MODEL = "google:gemini-3-flash-preview"
Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
MAX_MODELS = 60
"""The most models, which leaves room for those in use among the ones that stay built."""

ModelName = Annotated[str, Field(min_length=1, max_length=200)]


_CALLS_OF_A_JOB = 5
"""The number of model calls that must fit, each with its whole time limit, into one compaction."""
_MIN_SEALING_KEY_LENGTH = 16
_HOST = compiled(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_ORIGIN = compiled(r"[a-z][a-z0-9+.-]{0,60}://(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)


_REDIS_DATABASE = compiled(r"/?(?:[0-9]{1,5}/?)?", re.ASCII)


def _host_name(value: str) -> str:
    name = value.lower().removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        if not _HOST.fullmatch(name):
            raise ValueError(f"{value!r} is no host: write a name or an address without scheme and port") from None
        return name


def _origin_or_any(value: str) -> str:
    if value != "*" and not _ORIGIN.fullmatch(value.lower()):
        raise ValueError(f"{value!r} is no origin: write scheme and host, as http://localhost:3000, and nothing behind")
    return value.lower()


def _address_of_server(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port or the brackets of an IPv6 address
        is_address = False
    if value and (not is_address or len(value.split()) > 1 or value != value.strip()):
        # The value is not shown, since it may have a password.
        raise ValueError("no address of a server: write it with its scheme, as http://localhost:11434/v1")
    return value


ServerAddress = Annotated[str, AfterValidator(_address_of_server)]


def _address_of_redis(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_database = parts.scheme == "unix" or _REDIS_DATABASE.fullmatch(parts.path) is not None
        is_address = parts.scheme in {"redis", "rediss", "unix"} and parts.port != 0 and not parts.fragment
    except ValueError:  # what stands before the "/" of a password is no port
        is_address = is_database = False
    if value and not (is_address and is_database):
        # The value is not shown, since it may have a password; a library's own error would show a part of it.
        raise ValueError(
            "no address of a Redis: write it as redis://:password@host:6379/0, with / ? and # in the password as"
            " %2F %3F and %23"
        )
    return value


def _long_enough(value: SecretStr) -> SecretStr:
    if len(value) < _MIN_SEALING_KEY_LENGTH:
        raise ValueError(f"write at least {_MIN_SEALING_KEY_LENGTH} characters")
    return value


def _zero_where_absent(value: Any) -> Any:
    return 0 if value is None else value


def _empty_where_absent(value: Any) -> Any:
    return {} if value is None else value


def _days_or_for_ever(number: int) -> timedelta | None:
    return timedelta(days=number) if number else None


def _with_home_expanded(value: Path) -> Path:
    try:
        return value.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value} is in the home folder of nobody here") from error


class _Section(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _as_spelled(cls, value: Any) -> Any:
        if isinstance(value, dict) and (wrong := misspelled(map(str, value), cls.model_fields)):
            raise ValueError(wrong)
        return value


class RunnerCompaction(_Section):
    """Numbers of presets that compact above a number of tokens (``handoff``); a conversation's own take precedence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: Annotated[int, BeforeValidator(_zero_where_absent)] = Field(default=0, ge=-1)
    """0 or absent: the preset's number; −1: no automatic compaction."""
    keep_tail: Annotated[int, BeforeValidator(_zero_where_absent)] = Field(default=0, ge=0)
    """How many of the newest messages are kept unchanged; 0 or absent: the preset's number."""


class Runner(_Section):
    """The section in which Session Compaction has its settings, next to others that this service does not use."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    compaction: Annotated[RunnerCompaction, BeforeValidator(_empty_where_absent)] = RunnerCompaction()


class Settings(BaseSettings):
    """The settings, read once per process by the composition root.

    In the environment names have the prefix ``THROUGHLINE_``, except those that the platform fixes (``DATABASE_URL``,
    ``REDIS_URL``, ``HOST``, ``PORT``, ``GOOGLE_*``, ``OPENAI_*``).
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_ignore_empty=True,
        yaml_file="throughline.yaml",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        # The input that an error would show besides its reason may be a key.
        hide_input_in_errors=True,
    )

    database_url: str | None = Field(default=None, validation_alias="DATABASE_URL")
    """``postgresql://…`` (``postgres://`` and ``postgresql+asyncpg://`` are accepted too); embedded when unset."""
    redis_url: Annotated[str, AfterValidator(_address_of_redis)] | None = Field(
        default=None, validation_alias="REDIS_URL"
    )
    """``redis://…``, ``rediss://…`` or ``unix:///path?db=0``; embedded when unset."""
    host: str = Field(default="127.0.0.1", validation_alias="HOST")
    port: int = Field(default=8000, ge=1, le=65535, validation_alias="PORT")
    data_dir: Annotated[Path, AfterValidator(_with_home_expanded)] = Path(".data")
    """Where the embedded Postgres and Valkey keep their files; ``~`` is the home folder, as in a shell."""
    embedded: bool = False
    """Set by ``throughline run`` for its children when it runs the database itself."""

    google_api_key: SecretStr | None = Field(default=None, validation_alias="GOOGLE_API_KEY")
    google_base_url: ServerAddress | None = Field(default=None, validation_alias="GOOGLE_GEMINI_BASE_URL")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: ServerAddress | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    gemini_model: str = DEFAULT_GEMINI_MODEL
    """The default of both models when ``GOOGLE_API_KEY`` is set."""
    chat_model: str | None = None
    """Any pydantic-ai model name (``google:…``, ``openai:…``) or ``offline``."""
    compaction_model: str | None = None
    verify: Literal["auto", "off"] = "auto"
    """Whether a model judges what a model wrote in a compaction; a conversation sets ``policy.verify`` for itself."""
    verify_wait_seconds: int = Field(default=600, ge=0, le=86_400)
    """How long a state waits at most for others to be verified together with it; 0: not at all."""
    verifier_model: ModelName | None = None
    """The model that judges; unset: the one that writes states. A conversation sets ``policy.verifier_model``."""
    provider_caches: Literal["auto", "off"] = "auto"
    """Whether providers are asked to keep caches; a conversation sets ``policy.cache`` for itself."""
    models: Annotated[tuple[ModelName, ...], NoDecode, Field(max_length=MAX_MODELS)] = ()
    """Models that requests and policies may name, besides those in use; empty: only those named above and ``offline``.
    """
    ambient_credentials: bool = False
    """Whether other providers may use credentials that the process finds: variables, files, the machine's identity."""
    embedding_model: ModelName | None = None
    """The model that makes vectors for recall, such as ``google:gemini-embedding-001``; unset: recall compares words
    only.
    """
    embedding_dimensions: int | None = Field(default=None, ge=16, le=MAX_DIMENSIONS)
    """How many numbers of a vector the model is asked for; unset: as many as it gives."""
    embedding_question_seconds: float = Field(default=0.5, gt=0, le=60)
    """How many seconds a recall waits for the vector of its question; after that only words are compared."""
    model_input_limit: int | None = Field(default=None, ge=1_000)
    """The input limit in tokens of every provider model in use, instead of the one in the bundled table."""
    chat_timeout_seconds: Seconds = 60.0
    """How long one whole call of the chat model may take."""
    compaction_timeout_seconds: Seconds = DEFAULT_TIMINGS.call_seconds
    """How long one whole call of the compaction model may take."""
    model_failures_to_open: int = Field(default=5, ge=1)
    """After this many outages in a row, a model's provider is not called for a while."""
    model_pause_seconds: Seconds = 30.0
    """How long a provider is not called after that; then one call may try."""
    tenant_calls_per_hour: int = Field(default=1_000, ge=1)
    """Model calls that cost money, in all compactions of a tenant; ``policy.calls_per_hour`` limits a conversation."""
    default_preset: str = DEFAULT_PRESET
    """The preset of conversations that name none."""
    presets: Annotated[dict[str, dict[str, Any]], BeforeValidator(_empty_where_absent)] = {}
    """The operator's values for presets: fields of the policy, or numbers under the names in the design. What a
    conversation sets takes precedence.
    """
    tenant_limits: Limits = TENANT_LIMITS
    """The limits of a tenant; limits that are not named keep their defaults."""
    key_limits: Limits = KEY_LIMITS
    """The limits of a key that has none of its own."""
    failed_keys_per_minute: int = Field(default=60, ge=0)
    """The most requests per minute with invalid keys from one address; 0 = any number."""
    events_days: int = Field(default=90, ge=0, le=36_500)
    """How many days events of conversations are kept; 0 = as long as their conversations."""
    turns_days: int = Field(default=400, ge=0, le=36_500)
    """How many days ended turns are kept, except those of responses; 0 = as long as their conversations."""
    measures_days: int = Field(default=400, ge=0, le=36_500)
    """How many days records of expansions and of written details are kept; 0 = as long as their conversations."""
    state_versions_kept: int = Field(default=500, ge=0)
    """How many versions of its state a conversation keeps, the newest; 0 = all."""
    audit_days: int = Field(default=400, ge=0, le=36_500)
    """How many days the audit log is kept; 0 = for ever."""
    metrics_open: bool | None = None
    """Whether ``/metrics`` is answered; unset: only if the server listens on loopback."""
    docs_open: bool | None = None
    """Whether ``/docs`` and ``/openapi.json`` are answered; unset: only if the server listens on loopback."""
    runner: Annotated[Runner, BeforeValidator(_empty_where_absent)] = Runner()
    tools: Annotated[tuple[str, ...], NoDecode] = ()
    """Further tools of the chat model: Python callables, each as ``package.module:function``."""

    sealing_key: Annotated[SecretStr, AfterValidator(_long_enough)] | None = None
    """The key that seals what clients of ``/v1/responses/compact`` keep; unset: a secret of each tenant in the
    database.
    """
    auth_required: bool | None = None
    """Whether keys are required; unset: yes, unless the server listens on loopback in embedded mode."""
    allowed_hosts: Annotated[tuple[Annotated[str, AfterValidator(_host_name)], ...], NoDecode] = ()
    """Hosts besides loopback to which requests without a key may be sent, if such requests are answered at all."""
    cors_origins: Annotated[tuple[Annotated[str, AfterValidator(_origin_or_any)], ...], NoDecode] = (
        "http://localhost:3000",
        "http://127.0.0.1:3000",
    )
    max_body_bytes: int = Field(default=8_000_000, ge=10_000)
    max_media_bytes: int = Field(default=MEDIA_BYTES, ge=0)
    """The most media of a request to a model, in bytes of Base64; beyond it the oldest are replaced by words."""
    max_file_bytes: int = Field(default=MAX_FILE_BYTES, ge=1)
    """The most bytes of one file of a conversation."""
    max_files_bytes: int = Field(default=MAX_FILES_BYTES, ge=1)
    """The most bytes of all files of a conversation together."""
    request_timeout_seconds: Seconds = 120.0
    max_connections: int = Field(default=4_000, ge=1)
    """The most connections of one API process. ``app.http.connections`` explains this and the next two."""
    head_seconds: float = Field(default=20.0, gt=0, le=3_600)
    """How long the head of a request may take, from the connection's beginning or the first byte after an answer."""
    unread_seconds: float = Field(default=60.0, gt=0, le=3_600)
    """How long a client may read nothing of the data that waits for it."""
    worker_concurrency: int = Field(default=2, ge=1, le=64)
    work_processes: int = Field(default=2, ge=0, le=64)
    """How many processes an API process has for reading long texts; 0 = threads, which slow it and cannot be ended."""
    work_seconds: float = Field(default=90.0, gt=0, le=3_600)
    """How long one of these processes may read a text; then it is killed."""
    lease_seconds: Seconds = DEFAULT_TIMINGS.lease_seconds
    """This and the ``Seconds`` below are for tests and special cases; ``app.core.model.timings`` explains them."""
    heartbeat_seconds: Seconds = DEFAULT_TIMINGS.heartbeat_seconds
    turn_heartbeat_seconds: Seconds = DEFAULT_TIMINGS.turn_heartbeat_seconds
    sweep_seconds: Seconds = DEFAULT_TIMINGS.sweep_seconds
    resend_seconds: Seconds = DEFAULT_TIMINGS.resend_seconds
    stand_in_seconds: Seconds = DEFAULT_TIMINGS.stand_in_seconds
    poll_seconds: Seconds = DEFAULT_TIMINGS.poll_seconds
    event_poll_seconds: Seconds = DEFAULT_TIMINGS.event_poll_seconds
    event_heartbeat_seconds: Seconds = DEFAULT_TIMINGS.event_heartbeat_seconds
    unfollowed_seconds: Seconds = DEFAULT_TIMINGS.unfollowed_seconds
    stream_heartbeat_seconds: Seconds = DEFAULT_TIMINGS.stream_heartbeat_seconds
    job_seconds: float = Field(default=DEFAULT_TIMINGS.job_seconds, gt=0, le=86_400, allow_inf_nan=False)
    """How long a compaction outside of a turn may take; if unset, at least five times ``compaction_timeout_seconds``.
    """
    measure_seconds: Seconds = DEFAULT_TIMINGS.measure_seconds
    broker_pause_seconds: Seconds = DEFAULT_TIMINGS.broker_pause_seconds
    rebuild_seconds: Seconds = DEFAULT_TIMINGS.rebuild_seconds
    release_seconds: Seconds = DEFAULT_TIMINGS.release_seconds
    shutdown_seconds: Seconds = DEFAULT_TIMINGS.shutdown_seconds
    watchdog_seconds: float = Field(default=DEFAULT_TIMINGS.watchdog_seconds, ge=0, le=3_600)
    """After how long a silent process ends itself; 0 turns that off, for a debugger."""
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("cors_origins", "tools", "models", "allowed_hosts", mode="before")
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("tenant_limits", "key_limits", mode="before")
    @classmethod
    def _limits_over_defaults(cls, value: Any, info: ValidationInfo) -> Any:
        defaults = TENANT_LIMITS if info.field_name == "tenant_limits" else KEY_LIMITS
        if isinstance(value, dict) and (wrong := misspelled(map(str, value), Limits.model_fields)):
            raise ValueError(wrong)
        return {**defaults.model_dump(), **value} if isinstance(value, dict) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("default_preset")
    @classmethod
    def _is_preset(cls, value: str) -> str:
        try:
            return preset_named(value).name
        except UnknownPresetError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _check_operator_numbers(self) -> Self:
        # Impossible numbers are refused here, and not only when a conversation uses them.
        try:
            _ = self.operator_numbers
        except (PolicyInvalidError, UnknownPresetError) as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _check_timings(self) -> Self:
        _ = self.timings
        return self

    @property
    def retention(self) -> Retention:
        """How long data of limited life is kept."""
        return Retention(
            events=_days_or_for_ever(self.events_days),
            turns=_days_or_for_ever(self.turns_days),
            measures=_days_or_for_ever(self.measures_days),
            audit=_days_or_for_ever(self.audit_days),
        )

    @property
    def timings(self) -> Timings:
        """Leases, heartbeats, sweeps and polls."""
        names = {field.name for field in fields(Timings)} & type(self).model_fields.keys()
        given = {name: getattr(self, name) for name in names}
        timings = Timings(call_seconds=self.compaction_timeout_seconds, **given)
        if "job_seconds" in self.model_fields_set:
            return timings
        calls = _CALLS_OF_A_JOB * self.compaction_timeout_seconds
        return replace(timings, job_seconds=max(timings.job_seconds, calls))

    @property
    def resolved_chat_model(self) -> str:
        """The model that answers turns."""
        return self.chat_model or self._default_model

    @property
    def resolved_compaction_model(self) -> str:
        """The model that writes states."""
        return self.compaction_model or self._default_model

    @property
    def allowed_models(self) -> frozenset[str]:
        """The models that requests and policies may name."""
        in_use = {self.resolved_chat_model, self.resolved_compaction_model}
        in_use |= {self.verifier_model} if self.verifier_model else set()
        if self.models:
            return frozenset({*self.models, *in_use})
        return frozenset({*in_use, self._default_model, OFFLINE})

    @property
    def operator_numbers(self) -> OperatorNumbers:
        """The operator's numbers for the presets. Raises what ``operator_numbers`` raises; starting checks this."""
        common = self.runner.compaction
        return operator_numbers(self.presets, max_tokens=common.max_tokens, keep_tail=common.keep_tail)

    @property
    def _default_model(self) -> str:
        return self.gemini_model if self.google_api_key else OFFLINE

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the library's
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the library's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment, then ``.env``, then ``throughline.yaml``."""
        env_file = dotenv_settings.env_file if isinstance(dotenv_settings, DotEnvSettingsSource) else None
        files = StrictDotenv(settings_cls, env_file=env_file), StrictYaml(settings_cls)
        return init_settings, OwnVariables(settings_cls), *files
