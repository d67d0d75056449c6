"""Settings: where the servers are and which config holds, read from the environment once.

Each process reads them at its start and hands them on; nothing else looks at the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from undivided.store.config import (
    Config,
    ModelProfile,
    Price,
    WorkersConfig,
    default_config,
    load_config,
)
from undivided.store.config_mistakes import SettingsMistake

__all__ = [
    "Config",
    "ModelProfile",
    "Price",
    "Settings",
    "SettingsMistake",
    "WorkersConfig",
    "load_settings",
]


class Settings(Struct, frozen=True, kw_only=True):
    """Where this process finds its servers, and how it is to behave.

    `database_url`: the application role, which owns nothing. `database_direct_url`: the same
    past any pooler, for locks that live as long as a connection. `database_owner_url`: the
    role that may change the schema. `namespace`: prefix of every Redis key, so that two
    installations can share one server. `test_tools`: whether the test tools are registered.
    """

    database_url: str
    database_direct_url: str
    database_owner_url: str
    redis_url: str
    config: Config
    test_tools: bool = False
    namespace: str = "undivided"


def load_settings(environ: Mapping[str, str], config_path: Path | None = None) -> Settings:
    """Read settings from `environ` and the config from `config_path` or `UNDIVIDED_CONFIG`.

    Raises:
        SettingsMistake: one sentence that says where the mistake is and what is allowed.
    """
    url = _database(environ, "DATABASE_URL")
    if url is None:
        raise SettingsMistake(
            "DATABASE_URL is not set; give the database as postgresql://USER:PASSWORD@HOST/NAME, "
            "or run `undivided up`, which brings its own"
        )
    direct = _database(environ, "DATABASE_DIRECT_URL")
    path = config_path or (Path(given) if (given := environ.get("UNDIVIDED_CONFIG")) else None)
    return Settings(
        database_url=url,
        database_direct_url=direct or url,
        database_owner_url=_database(environ, "DATABASE_OWNER_URL") or direct or url,
        redis_url=_redis(environ),
        config=load_config(path) if path else default_config(),
        test_tools=_flag(environ, "UNDIVIDED_TEST_TOOLS"),
        namespace=environ.get("UNDIVIDED_NAMESPACE") or "undivided",
    )


def _database(environ: Mapping[str, str], name: str) -> str | None:
    """Read a database address; the text of a mistake never repeats it, for it has a password."""
    url = environ.get(name)
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise SettingsMistake(f"{name} must begin with postgresql://, as in {_EXAMPLE}")
    return url or None


_EXAMPLE = "postgresql://USER:PASSWORD@HOST:5432/NAME"


def _redis(environ: Mapping[str, str]) -> str:
    url = environ.get("REDIS_URL") or "redis://127.0.0.1:6379/0"
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise SettingsMistake("REDIS_URL must begin with redis://, rediss:// or unix://")
    return url


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "")
    if value not in {"", "0", "1"}:
        raise SettingsMistake(f'{name} is "{value}"; allowed are 1 and 0')
    return value == "1"
