"""Settings of every process: environment variables first, then ``throughline.yaml``, then defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
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

from app.setting_files import StrictDotenv, StrictYaml, misspelled

DEFAULT_GEMINI_MODEL = "google:gemini-3-flash-preview"
OFFLINE_MODEL = "offline"


def _zero_where_absent(value: Any) -> Any:
    """A key without a value is as good as none."""
    return 0 if value is None else value


def _empty_where_absent(value: Any) -> Any:
    return {} if value is None else value


def _at_home(value: Path) -> Path:
    """With ``~`` as a shell would read it. Raises ``ValueError`` where nobody knows which folder that is."""
    try:
        return value.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value} is in the home folder of nobody here") from error


class RunnerCompaction(BaseModel):
    """Numbers of the presets that compact above a number of tokens (``handoff``); a conversation's own come first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: Annotated[int, BeforeValidator(_zero_where_absent)] = Field(default=0, ge=-1)
    """0 or absent: the preset's number; −1: no automatic compaction."""
    keep_tail: Annotated[int, BeforeValidator(_zero_where_absent)] = Field(default=0, ge=0)
    """The newest messages, kept as they are; 0 or absent: the preset's number."""


class Runner(BaseModel):
    """The section under which Session Compaction has its settings, beside others that are not ours."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    compaction: Annotated[RunnerCompaction, BeforeValidator(_empty_where_absent)] = RunnerCompaction()

    @model_validator(mode="before")
    @classmethod
    def _as_spelled(cls, value: Any) -> Any:
        if isinstance(value, dict) and (wrong := misspelled(map(str, value), cls.model_fields)):
            raise ValueError(wrong)
        return value


class Settings(BaseSettings):
    """One value, read once per process by the composition root.

    Names carry the prefix ``THROUGHLINE_`` in the environment, but for those that the
    platform fixes (``DATABASE_URL``, ``REDIS_URL``, ``HOST``, ``PORT``, ``GOOGLE_*``, ``OPENAI_*``).
    """

    model_config = SettingsConfigDict(
        env_prefix="THROUGHLINE_",
        env_file=".env",
        env_ignore_empty=True,
        yaml_file="throughline.yaml",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    database_url: str | None = Field(default=None, validation_alias="DATABASE_URL")
    """``postgresql+asyncpg://…`` (``postgresql://`` and ``postgres://`` are accepted too); embedded when unset."""
    redis_url: str | None = Field(default=None, validation_alias="REDIS_URL")
    """``redis://…``, ``rediss://…`` or ``unix:///path?db=0``; embedded when unset."""
    host: str = Field(default="127.0.0.1", validation_alias="HOST")
    port: int = Field(default=8000, ge=1, le=65535, validation_alias="PORT")
    data_dir: Annotated[Path, AfterValidator(_at_home)] = Path(".data")
    """Where the embedded Postgres and Valkey keep their files; ``~`` is the home folder, as in a shell."""
    embedded: bool = False
    """Set by ``throughline run`` for its children when it runs the database itself."""

    google_api_key: SecretStr | None = Field(default=None, validation_alias="GOOGLE_API_KEY")
    google_base_url: str | None = Field(default=None, validation_alias="GOOGLE_GEMINI_BASE_URL")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    gemini_model: str = DEFAULT_GEMINI_MODEL
    """The default of both models when ``GOOGLE_API_KEY`` is set."""
    chat_model: str | None = None
    """Any pydantic-ai model name (``google:…``, ``openai:…``) or ``offline``."""
    compaction_model: str | None = None
    model_input_limit: int | None = Field(default=None, ge=1_000)
    """Input limit in tokens of every provider model in use, in place of the bundled table."""
    chat_timeout_seconds: float = Field(default=60.0, gt=0)
    """For one whole call of the chat model."""
    compaction_timeout_seconds: float = Field(default=60.0, gt=0)
    """For one whole call of the compaction model."""
    model_failures_to_open: int = Field(default=5, ge=1)
    """After so many outages in a row a model's provider is left alone for a while."""
    model_pause_seconds: float = Field(default=30.0, gt=0)
    """For how long, until one call may try."""
    tenant_calls_per_hour: int = Field(default=1_000, ge=1)
    """Model calls that cost money, of all compactions of a tenant together; ``policy.calls_per_hour`` is one's own."""
    runner: Annotated[Runner, BeforeValidator(_empty_where_absent)] = Runner()
    tools: Annotated[tuple[str, ...], NoDecode] = ()
    """Further tools of the chat model: Python callables, each as ``package.module:function``."""

    auth_required: bool | None = None
    """Unset: keys are required unless the server listens on loopback in embedded mode."""
    cors_origins: Annotated[tuple[str, ...], NoDecode] = ("http://localhost:3000", "http://127.0.0.1:3000")
    max_body_bytes: int = Field(default=8_000_000, ge=10_000)
    request_timeout_seconds: float = Field(default=120.0, gt=0)
    worker_concurrency: int = Field(default=2, ge=1, le=64)
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("cors_origins", "tools", mode="before")
    @classmethod
    def _split_lists(cls, value: Any) -> Any:
        """Accept ``a,b`` from the environment beside a YAML list."""
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, value: Any) -> Any:
        """``info`` is what many programs call it."""
        return value.upper() if isinstance(value, str) else value

    @property
    def resolved_chat_model(self) -> str:
        """The model that answers turns."""
        return self.chat_model or self._default_model

    @property
    def resolved_compaction_model(self) -> str:
        """The model that writes states."""
        return self.compaction_model or self._default_model

    @property
    def _default_model(self) -> str:
        return self.gemini_model if self.google_api_key else OFFLINE_MODEL

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the library's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment, then ``.env``, then ``throughline.yaml``."""
        env_file = dotenv_settings.env_file if isinstance(dotenv_settings, DotEnvSettingsSource) else None
        return init_settings, env_settings, StrictDotenv(settings_cls, env_file=env_file), StrictYaml(settings_cls)
