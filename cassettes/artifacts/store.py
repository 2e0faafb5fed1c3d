"""Where artifacts live: candidates, published Cassettes, imports (spec: cassette-v7 §2.1, §13).

    <home>/cassettes/<cassetteId>/                     published, immutable but for the display name
    <home>/recordings/<recordingId>/candidate/         being written
    <home>/incoming/<token>/                           imports and rubbish on their way in or out

Every change becomes visible by one rename: a reader sees nothing or a complete Cassette. All calls are safe beside
other processes on the same home.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from cassettes.artifacts.audit import StaticReport, verify_static
from cassettes.artifacts.candidate import PRIVATE_FOLDER, Candidate
from cassettes.artifacts.cassette import FILES, CassetteFolder
from cassettes.artifacts.files import make_folder, move_folder, remove_tree, sync_folder, write_new
from cassettes.artifacts.locks import FolderLock
from cassettes.artifacts.publish import PublishRequest, prepare_publication
from cassettes.core.errors import CassetteRejected, Conflict, Place
from cassettes.core.manifest import CassetteManifest, check_id, check_name, encode_manifest, manifest_hash

_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Published:
    """A Cassette that became visible."""

    manifest: CassetteManifest
    manifest_sha256: str
    path: Path


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import; `already_present` when the same Cassette was there before (nothing changed)."""

    cassette_id: str
    manifest: CassetteManifest
    manifest_sha256: str
    path: Path
    report: StaticReport
    already_present: bool = False


class ArtifactStore:
    """The artifacts below one home folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.cassettes = home / "cassettes"
        self.recordings = home / "recordings"
        self.incoming = home / "incoming"

    # ------------------------------------------------------------------------------------------ candidates
    def candidate_path(self, recording_id: str) -> Path:
        """The candidate folder of a Recording."""
        return self.recordings / check_id(recording_id) / "candidate"

    def prepare(self, recording_id: str) -> Candidate:
        """Create the candidate of a new Recording with empty parts (§13.1).

        Raises `Conflict` (`recording_exists`) when the Recording already has one.
        """
        path = self.candidate_path(recording_id)
        lock = FolderLock.take(path.parent.with_name(path.parent.name + _LOCK))
        if lock is None or path.exists():
            if lock is not None:
                lock.release()
            raise Conflict(
                "This Recording already has a candidate.",
                code="recording_exists",
                hint="Use a new recording id, or discard the old candidate.",
            )
        make_folder(path)
        return Candidate.create(path, recording_id, lock)

    def publish(self, candidate: Candidate, request: PublishRequest) -> Published:
        """Verify and seal a candidate and make it visible under its Cassette id (§13.3).

        A failed publish leaves the candidate and nothing under the published path. Raises `CassetteRejected`, or
        `Conflict` (`cassette_exists`).
        """
        target = self.cassettes / check_id(request.cassette_id)
        candidate.close()
        manifest, digest = prepare_publication(candidate, request)
        manifest_path = candidate.path / FILES.cassette_manifest.path
        try:
            verify_static(
                candidate.path,
                expected_id=request.cassette_id,
                manifest_sha256=digest,
                ignored_folders=(PRIVATE_FOLDER,),
            )
            if target.exists():
                raise self._exists(request.cassette_id)
        except BaseException:
            manifest_path.unlink(missing_ok=True)
            raise
        remove_tree(candidate.path / PRIVATE_FOLDER)
        if not move_folder(candidate.path, target):
            raise self._exists(request.cassette_id)
        remove_tree(candidate.path.parent)
        candidate.release()
        return Published(manifest, digest, target)

    def rollback(self, cassette_id: str, recording_id: str) -> Path:
        """Take a published folder back to the candidate path, when its metadata could not be committed (§13.6).

        The journal is gone, so the candidate cannot be published again.
        """
        source = self.cassettes / check_id(cassette_id)
        target = self.candidate_path(recording_id)
        make_folder(target.parent)
        if not source.exists() or not move_folder(source, target):
            raise Conflict("The published Cassette cannot be taken back.", code="rollback_failed")
        return target

    def discard_candidate(self, recording_id: str) -> None:
        """Delete a Recording's candidate; absent is fine."""
        self._discard(self.candidate_path(recording_id).parent)

    def discard(self, cassette_id: str) -> None:
        """Delete a published Cassette: it vanishes by one rename; absent is fine."""
        self._discard(self.cassettes / check_id(cassette_id))

    def _discard(self, path: Path) -> None:
        if not path.exists():
            return
        with self.staging() as staging:
            move_folder(path, staging / "discarded")

    # ------------------------------------------------------------------------------------------ published
    def ids(self) -> Iterator[str]:
        """The ids of all published Cassettes, sorted."""
        if self.cassettes.is_dir():
            for path in sorted(self.cassettes.iterdir()):
                if not path.name.startswith(".") and (path / FILES.cassette_manifest.path).is_file():
                    yield path.name

    def holds(self, cassette_id: str) -> bool:
        """Whether a Cassette with this id is published."""
        return (self.cassettes / check_id(cassette_id) / FILES.cassette_manifest.path).is_file()

    def folder(self, cassette_id: str) -> CassetteFolder:
        """A published Cassette as it lies there, unverified. Raises `CassetteRejected` (`cassette_not_found`)."""
        if not self.holds(cassette_id):
            raise CassetteRejected(
                "There is no Cassette with this id.",
                code="cassette_not_found",
                found=cassette_id,
                hint="It may have been deleted; import it again.",
            )
        return CassetteFolder(self.cassettes / cassette_id)

    def resolve(self, cassette_id: str, manifest_sha256: str = "") -> CassetteFolder:
        """A published Cassette after complete verification (§13.4), also against an expected manifest hash."""
        folder = self.folder(cassette_id)
        verify_static(folder.path, expected_id=cassette_id, manifest_sha256=manifest_sha256)
        return folder

    def rename(self, cassette_id: str, name: str, manifest_sha256: str = "") -> Published:
        """Change only the display name (§13.5); gives the new manifest and hash."""
        name = check_name(name)
        folder = self.resolve(cassette_id, manifest_sha256)
        manifest = msgspec.structs.replace(folder.manifest, name=name)
        data = encode_manifest(manifest)
        with self.staging() as staging:
            # Not beside the target: a leftover there would be an unrelated file of the Cassette.
            fresh = staging / FILES.cassette_manifest.path
            write_new(fresh, (data,))
            fresh.replace(folder.path / FILES.cassette_manifest.path)
            sync_folder(folder.path)
        return Published(manifest, manifest_hash(data), folder.path)

    # ------------------------------------------------------------------------------------------ imports
    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A fresh private folder that is gone afterwards, on every exit path."""
        token = secrets.token_hex(8)
        lock = FolderLock.take(self.incoming / (token + _LOCK))
        assert lock is not None
        path = make_folder(self.incoming / token)
        try:
            yield path
        finally:
            remove_tree(path)
            lock.release()

    def adopt(self, tree: Path) -> Imported:
        """Verify an unpacked Cassette and publish it by one rename.

        The same Cassette again is no change (`already_present`); another one under the same id is a `Conflict`
        (`cassette_exists`).
        """
        report = verify_static(tree)
        manifest, digest = report.manifest, report.manifest_sha256
        target = self.cassettes / check_id(manifest.id)
        imported = Imported(manifest.id, manifest, digest, target, report)
        if target.exists() or not move_folder(tree, target):
            existing = CassetteFolder(target)
            if msgspec.structs.replace(existing.manifest, name="") != msgspec.structs.replace(manifest, name=""):
                raise self._exists(manifest.id)
            return replace(
                imported,
                manifest=existing.manifest,
                manifest_sha256=existing.manifest_sha256,
                already_present=True,
            )
        return imported

    def _exists(self, cassette_id: str) -> Conflict:
        return Conflict(
            "Another Cassette with this id exists.",
            code="cassette_exists",
            place=Place(file=FILES.cassette_manifest.path, path="$.id"),
            found=cassette_id,
            hint="Delete the existing Cassette first if the new one shall replace it.",
        )

    # ------------------------------------------------------------------------------------------ start-up
    def sweep(self, keep: Collection[str] = ()) -> list[str]:
        """Remove what dead processes left: unfinished imports, and candidates whose id is not in `keep`.

        Folders that a living process works on are left alone. Returns what was removed, relative to the home.
        """
        removed = self._sweep_folder(self.incoming, ())
        return removed + self._sweep_folder(self.recordings, keep)

    def _sweep_folder(self, folder: Path, keep: Collection[str]) -> list[str]:
        removed = []
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            name = path.name.removesuffix(_LOCK)
            if name in keep:
                continue
            lock = FolderLock.take(folder / (name + _LOCK))
            if lock is None:
                continue
            if (folder / name).exists():
                remove_tree(folder / name)
                removed.append(f"{folder.name}/{name}")
            lock.release()
        return removed
