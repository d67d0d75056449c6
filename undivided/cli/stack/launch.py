"""Become another program that is told to stop when its parent dies.

Run as a script, by path, before anything of the product is imported: it drops the rights of
root if it is told to, asks the kernel for SIGTERM at its parent's death, and executes the
program. Doing this between fork and exec of the parent would not be safe beside its threads.

    launch.py PARENT_PID|- USER:GROUP|- PROGRAM ARGUMENT...
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: str, identity: str, command: list[str]) -> None:
    """Drop rights, tie the life of this process to its parent's, and become `command`."""
    # Before rights are dropped: without them the library may be out of reach.
    libc = ctypes.CDLL(None) if parent != "-" else None
    if identity != "-":
        user, group = (int(part) for part in identity.split(":"))
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if libc:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # after setuid, which clears it
        if os.getppid() != int(parent):
            sys.exit(1)  # the parent died before it could be watched
    os.execv(command[0], command)  # noqa: S606 the whole purpose, and no shell


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
