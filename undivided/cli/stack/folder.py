"""The data folder: what of a stack lasts from one start to the next.

DIR/lock          held while a stack runs on this folder
DIR/servers.json  passwords and ports of the embedded servers, readable by the owner only
DIR/run.json      where the running stack is, and its process ids; gone when it has stopped
DIR/postgres/     the database
DIR/logs/         what each process says
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import secrets
import socket
from pathlib import Path

import msgspec
from msgspec import Struct

from undivided.cli.stack.spawn import Mistake

_LOG_BYTES = 10_000_000
# Below the range from which the kernel takes ports for outgoing connections: a port from
# there could be lost to one of them while a server restarts.
_PORTS = range(15_000, 30_000)


class Servers(Struct, frozen=True, rename="camel", kw_only=True):
    """What the embedded servers keep between two starts."""

    owner_password: str
    app_password: str
    valkey_password: str
    postgres_port: int
    valkey_port: int


class Pids(Struct, frozen=True, kw_only=True):
    """The process ids of a running stack; a server of somebody else's has none."""

    api: list[int]
    workers: list[int]
    clock: list[int]
    postgres: int | None
    valkey: int | None


class Run(Struct, frozen=True, rename="camel", kw_only=True):
    """Where a running stack is."""

    url: str
    database_url: str
    redis_url: str
    pids: Pids


class Folder:
    """One data folder, made if it is not there."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise Mistake(f"the data folder {path} cannot be used: {error.strerror}") from None

    @property
    def postgres(self) -> Path:
        """Where the database is."""
        return self.path / "postgres"

    @property
    def logs(self) -> Path:
        """Where the processes' logs are."""
        return self.path / "logs"

    def log(self, name: str) -> Path:
        """The log of one process; a large one from earlier is put aside."""
        path = self.logs / f"{name}.log"
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > _LOG_BYTES:
                path.rename(path.with_suffix(".log.1"))
        return path

    def lock(self) -> int:
        """Claim the folder for one stack; the claim ends with the process, however it ends.

        Raises:
            Mistake: another stack runs on it.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            run = self.run()
            where = f" at {run.url}" if run else ""
            raise Mistake(
                f"`undivided up` already runs on {self.path}{where}; stop it, or choose another "
                "folder with --data"
            ) from None
        return descriptor

    def servers(self) -> Servers:
        """Passwords and ports, made at the first start; a port taken meanwhile is replaced."""
        path = self.path / "servers.json"
        try:
            known = msgspec.json.decode(path.read_bytes(), type=Servers)
        except FileNotFoundError:
            known = Servers(
                owner_password=secrets.token_urlsafe(24),
                app_password=secrets.token_urlsafe(24),
                valkey_password=secrets.token_urlsafe(24),
                postgres_port=0,
                valkey_port=0,
            )
        except msgspec.DecodeError as error:
            raise Mistake(f"{path} is damaged ({error}); bring it back from a backup") from None
        postgres = _port(known.postgres_port, other=known.valkey_port)
        known = msgspec.structs.replace(
            known, postgres_port=postgres, valkey_port=_port(known.valkey_port, other=postgres)
        )
        _write(path, msgspec.json.encode(known))
        return known

    def run(self) -> Run | None:
        """Where the stack on this folder runs; None if it does not."""
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            return msgspec.json.decode((self.path / "run.json").read_bytes(), type=Run)
        return None

    def announce(self, run: Run) -> None:
        """Write run.json, whole or not at all."""
        _write(self.path / "run.json", msgspec.json.format(msgspec.json.encode(run), indent=2))

    def withdraw(self) -> None:
        """Take run.json away: nothing runs here."""
        (self.path / "run.json").unlink(missing_ok=True)


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(other: int = 0) -> int:
    """A loopback port that nobody listens on."""
    return _port(0, other=other)


def _port(wanted: int, *, other: int) -> int:
    tries = (wanted, *random.sample(_PORTS, 200)) if wanted else random.sample(_PORTS, 200)
    for port in tries:
        if port != other and port_is_free("127.0.0.1", port):
            return port
    raise Mistake("no free port on 127.0.0.1; stop something that listens")


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
