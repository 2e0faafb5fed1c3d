"""Catalog and disk agree after any sequence of imports, renames, deletions and rebuilds, whatever fails on the way.

A fault is one of: the database refuses a write; the disk refuses a change; the process dies between a change on disk
and its rows, and starts again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError
from django.db.models.query import QuerySet
from django.test import override_settings
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cassettes import catalog
from cassettes.artifacts.archives import import_folder
from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import Conflict, RepriseError
from cassettes.models import Cassette, Recording
from tests.making import edit
from tests.samples import CLAUDE, CODEX, cassette_copy

FAULTS = ("none", "database", "disk", "death")
NAMES = st.sampled_from(["One", "Another", "é" * 120, "", "x" * 121])


class _Death(BaseException):
    """The process is gone."""


@contextmanager
def failing(fault: str, disk: str) -> Iterator[None]:
    """Let the database, the operation `disk` of the store, or the process after it, fail."""
    if fault == "none":
        yield
        return
    if fault == "database":
        refused = mock.Mock(side_effect=OperationalError("the database refuses"))
        with mock.patch.object(QuerySet, "update_or_create", refused), mock.patch.object(QuerySet, "delete", refused):
            yield
        return
    real: Callable[..., Any] = getattr(ArtifactStore, disk)

    def broken(store: ArtifactStore, *arguments: Any) -> Any:
        if fault == "disk":
            raise OSError(28, "No space left on device")
        real(store, *arguments)
        raise _Death

    with mock.patch.object(ArtifactStore, disk, broken):
        yield


class Agreement(RuleBasedStateMachine):
    """What an installation goes through."""

    sources: dict[str, Path] = {}  # noqa: RUF012  # made once for all runs

    @initialize()
    def begin(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="reprise-agreement-"))
        self.settings = override_settings(REPRISE_HOME=self.home)
        self.settings.enable()
        Recording.objects.all().delete()
        Cassette.objects.all().delete()

    def teardown(self) -> None:
        if hasattr(self, "settings"):
            self.settings.disable()
            shutil.rmtree(self.home, ignore_errors=True)

    def attempt(self, fault: str, disk: str, work: Callable[[], object]) -> None:
        """Do it; what may go wrong must leave everything in agreement."""
        try:
            with failing(fault, disk):
                work()
        except _Death:
            catalog.store().sweep()
            catalog.reconcile()
        except (OperationalError, OSError):
            assert fault in ("database", "disk")
        except RepriseError:
            pass

    @rule(stem=st.sampled_from(["codex", "claude", "impostor"]), fault=st.sampled_from(FAULTS))
    def import_one(self, stem: str, fault: str) -> None:
        def work() -> None:
            made = import_folder(self.sources[stem], catalog.store())
            (catalog.add_from_artifact if made.already_present else catalog.publish_row)(made.cassette_id)

        self.attempt(fault, "adopt", work)

    @precondition(lambda self: any(catalog.store().ids()))
    @rule(name=NAMES, fault=st.sampled_from(FAULTS), data=st.data())
    def rename(self, name: str, fault: str, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(list(catalog.store().ids())))
        self.attempt(fault, "rename", lambda: catalog.rename(chosen, name))

    @precondition(lambda self: any(catalog.store().ids()))
    @rule(fault=st.sampled_from(FAULTS), data=st.data())
    def delete(self, fault: str, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(list(catalog.store().ids())))
        self.attempt(fault, "discard", lambda: catalog.delete(chosen))

    @rule()
    def rebuild(self) -> None:
        before = list(Cassette.objects.order_by("pk").values())
        result = catalog.rebuild()
        assert (result.removed, result.broken) == ([], [])
        assert list(Cassette.objects.order_by("pk").values()) == before

    @rule()
    def lose_the_database(self) -> None:
        Recording.objects.all().delete()
        Cassette.objects.all().delete()
        catalog.rebuild()

    @invariant()
    def catalog_and_disk_agree(self) -> None:
        if not hasattr(self, "home"):
            return
        store = catalog.store()
        assert set(Cassette.objects.values_list("pk", flat=True)) == set(store.ids())
        for row in Cassette.objects.select_related("recording"):
            report = verify_static(store.folder(row.pk).path, expected_id=row.pk)
            assert (row.name, row.manifest_sha256) == (report.manifest.name, report.manifest_sha256)
            assert row.recording.pk == report.manifest.source_recording_id
            assert (row.recording.name, row.recording.status) == (row.name, "complete")
        assert Recording.objects.count() == Cassette.objects.count()
        assert [path for path in store.incoming.glob("*") if not path.name.endswith(".lock")] == []


@pytest.mark.django_db
def test_catalog_and_disk_agree_whatever_fails(tmp_path: Path) -> None:
    impostor = cassette_copy(CODEX, tmp_path / "impostor")
    edit(impostor, "cassette.json", lambda value: value.update(createdAtUnixMs=value["createdAtUnixMs"] + 1))
    Agreement.sources = {
        "codex": cassette_copy(CODEX, tmp_path),
        "claude": cassette_copy(CLAUDE, tmp_path),
        "impostor": impostor,  # another Cassette with the id of the first
    }
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Agreement, settings=hypothesis_settings(max_examples=25, stateful_step_count=12, deadline=None)
    )


@pytest.mark.django_db
def test_another_cassette_of_the_same_recording_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    first = import_folder(cassette_copy(CODEX, tmp_path), catalog.store())
    catalog.publish_row(first.cassette_id)
    twin = cassette_copy(CODEX, tmp_path / "twin")
    edit(twin, "cassette.json", lambda value: value.update(id="another-id"))
    second = import_folder(twin, catalog.store())
    with pytest.raises(Conflict) as refused:
        catalog.publish_row(second.cassette_id)
    assert refused.value.code == "recording_exists"
    assert list(catalog.store().ids()) == [first.cassette_id]


def test_the_same_cassette_again_is_a_no_op_and_another_under_its_id_is_refused(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "home")
    source = cassette_copy(CODEX, tmp_path)
    first = import_folder(source, store)
    again = import_folder(source, store)
    assert (first.already_present, again.already_present) == (False, True)
    store.rename(first.cassette_id, "A new name")
    assert import_folder(source, store).manifest.name == "A new name"
    edit(source, "cassette.json", lambda value: value.update(createdAtUnixMs=1))
    with pytest.raises(Conflict) as refused:
        import_folder(source, store)
    assert refused.value.code == "cassette_exists"
