"""What a worker may use. It reads hostile artifacts, so it gets no secret, no network and no more than it needs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path

MEMORY_BYTES = 4 * 1024**3
CPU_SECONDS = 4 * 3600
FILE_BYTES = 2 * 1024**3
OPEN_FILES = 256

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")


def confine() -> str:
    """Take from this process what a worker must not have. Gives `none` or `shared`: the network it is left with."""
    os.umask(0o077)
    for name in [name for name in os.environ if name not in _KEPT_VARIABLES]:
        del os.environ[name]
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bound, bound))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server; the worker follows when its socket closes
    network = "none" if _without_network() else "shared"
    _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return network


def _without_network() -> bool:
    """Move into a network namespace with nothing in it, where the kernel lets us."""
    libc = _libc()
    if libc.unshare(_CLONE_NEWNET) == 0:
        return True
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return True


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
