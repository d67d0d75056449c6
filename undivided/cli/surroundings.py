"""Where a command finds its servers when nobody told it: the stack that runs here.

The environment comes first. Without `DATABASE_URL` in it, a stack that `undivided up` keeps
running on ./.undivided lends its addresses, the owner's too, since whoever can read its data
folder owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from undivided.cli.stack.folder import Run, Servers

DEFAULT_DATA = Path(".undivided")


def surroundings(environ: Mapping[str, str], data: Path = DEFAULT_DATA) -> dict[str, str]:
    """The environment, completed by the stack that runs on `data` if it names no database."""
    if environ.get("DATABASE_URL"):
        return dict(environ)
    try:
        run = msgspec.json.decode((data / "run.json").read_bytes(), type=Run)
        servers = msgspec.json.decode((data / "servers.json").read_bytes(), type=Servers)
    except (OSError, msgspec.DecodeError):
        return dict(environ)
    found = {
        "DATABASE_URL": run.database_url,
        "DATABASE_OWNER_URL": _as_owner(run.database_url, servers),
        "REDIS_URL": run.redis_url,
    }
    return found | {name: value for name, value in environ.items() if value}


def _as_owner(url: str, servers: Servers) -> str:
    parts = urlsplit(url)
    where = f"postgres:{servers.owner_password}@{parts.hostname}:{parts.port}"
    return urlunsplit(parts._replace(netloc=where))
