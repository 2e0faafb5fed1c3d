"""A process that dies at any step leaves nothing or a complete Cassette, and the next start clears up after it.

Each operation runs in a process of its own that is killed (SIGKILL) before its first change of a file or folder, then
before its second, and so on, until it comes to its end.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cassettes.artifacts.archives import export_archive, import_archive
from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.store import ArtifactStore
from cassettes.transcripts.importing import import_transcript
from tests.samples import CODEX, PROVIDERS, cassette_copy

_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}
Work = Callable[[ArtifactStore], object]


def dies_before(step: int, work: Callable[[], object]) -> bool:
    """Run `work` in a process that dies before its `step`-th change on disk. False: it came to its end before."""
    pid = os.fork()
    if pid == 0:
        left = step

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in _CHANGES:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.addaudithook(watch)
            work()
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(pid, 0)
    if os.WIFSIGNALED(ended):
        return True
    assert os.WEXITSTATUS(ended) == 0, "the operation itself failed"
    return False


def every_crash(home: Path, prepare: Work, work: Work, check: Work) -> int:
    """Let the operation die at every step; `check` looks at the store after each. Gives the number of steps."""
    step = 0
    while True:
        step += 1
        shutil.rmtree(home, ignore_errors=True)
        store = ArtifactStore(home)
        prepare(store)
        died = dies_before(step, lambda store=store: work(store))  # type: ignore[misc]
        check(store)
        store.sweep()
        assert [path.name for path in home.glob("incoming/*") if not path.name.endswith(".lock")] == []
        assert [path.name for path in home.glob("recordings/*") if not path.name.endswith(".lock")] == []
        check(store)
        if not died:
            return step


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A Cassette as an archive."""
    store = ArtifactStore(tmp_path / "source")
    shutil.copytree(cassette_copy(CODEX, tmp_path), store.cassettes / "x")
    cassette_id = verify_static(store.cassettes / "x").manifest.id
    (store.cassettes / "x").rename(store.cassettes / cassette_id)
    target = tmp_path / "cassette.tar.gz"
    with target.open("wb") as out:
        export_archive(store, cassette_id, ".tar.gz", out)
    return target


def nothing_or_whole(store: ArtifactStore) -> None:
    """Every Cassette that is there keeps its contract."""
    for cassette_id in store.ids():
        verify_static(store.folder(cassette_id).path, expected_id=cassette_id)
    hidden = [path for path in store.cassettes.glob("*") if path.name not in set(store.ids())]
    assert hidden == []


def test_an_import_that_dies_leaves_nothing_or_a_complete_cassette(archive: Path, tmp_path: Path) -> None:
    steps = every_crash(
        tmp_path / "home", lambda store: None, lambda store: import_archive(archive, store), nothing_or_whole
    )
    assert steps > 15


def test_a_recording_that_dies_leaves_nothing_or_a_complete_cassette(tmp_path: Path) -> None:
    transcript = PROVIDERS / "codex-rollout-control.jsonl"
    steps = every_crash(
        tmp_path / "home", lambda store: None, lambda store: import_transcript(transcript, store), nothing_or_whole
    )
    assert steps > 15


def test_a_rename_that_dies_leaves_the_old_or_the_new_name(archive: Path, tmp_path: Path) -> None:
    names = set()

    def prepare(store: ArtifactStore) -> None:
        import_archive(archive, store)
        store.rename(next(store.ids()), "before")

    def check(store: ArtifactStore) -> None:
        nothing_or_whole(store)
        names.add(store.folder(next(store.ids())).manifest.name)

    every_crash(tmp_path / "home", prepare, lambda store: store.rename(next(store.ids()), "after"), check)
    assert names == {"before", "after"}


def test_a_discard_that_dies_leaves_all_or_nothing(archive: Path, tmp_path: Path) -> None:
    counts = set()

    def check(store: ArtifactStore) -> None:
        nothing_or_whole(store)
        counts.add(len(list(store.ids())))

    every_crash(
        tmp_path / "home",
        lambda store: import_archive(archive, store),
        lambda store: store.discard(next(store.ids())),
        check,
    )
    assert counts == {0, 1}
