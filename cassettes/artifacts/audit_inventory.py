"""The inventory of a Cassette against the policy and the disk, and its blobs (spec: cassette-v7 §5, §6, H7)."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cassettes.artifacts.files import sha256_of, walk_files
from cassettes.core.blobs import BLOB_MANIFEST_FILE, BlobManifest, check_entry, is_digest
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.manifest import MANIFEST_FILE, CassetteManifest, InventoryFile
from cassettes.core.policy import BLOB_FOLDER, BLOB_ROLE, POLICY, PolicyFile

_LIMITS = POLICY.limits
_FRAMES = POLICY.files.provider_frames.path
_LARGE = 1 << 23  # bytes of a file from which on hashing it beside the audit pays
_INITIAL = POLICY.files.initial_state.path


def _refuse(
    code: str, message: str, path: str = "", *, file: str = MANIFEST_FILE, expected: object = None, found: object = None
) -> CassetteRejected:
    return CassetteRejected(
        message,
        code=code,
        place=Place(file=file, path=path),
        expected=expected,
        found=found,
        hint="The Cassette was changed or damaged after it was sealed; get it again from its source.",
    )


def check_blobs(blobs: BlobManifest) -> None:
    """Version, every entry (§6.2), and no two entries with one target (H7)."""
    if blobs.schema_version != POLICY.blob_manifest_schema_version:
        raise _refuse(
            "blob_manifest_version",
            "The blob manifest has an unknown version.",
            "$.schemaVersion",
            file=BLOB_MANIFEST_FILE,
            expected=POLICY.blob_manifest_schema_version,
            found=blobs.schema_version,
        )
    targets: set[str] = set()
    for index, entry in enumerate(blobs.blobs):
        check_entry(entry, index)
        if entry.target in targets:
            raise _refuse(
                "blob_target_duplicate", "Two blobs have the same target.", f"$.blobs[{index}]", file=BLOB_MANIFEST_FILE
            )
        targets.add(entry.target)


def check_inventory(manifest: CassetteManifest, blobs: BlobManifest) -> None:
    """The manifest's own list against the policy (§5.1), in order."""
    if manifest.max_total_bytes != _LIMITS.max_cassette_bytes:
        raise _refuse(
            "inventory_limit",
            "The size limit is not the policy's.",
            "$.maxTotalBytes",
            expected=_LIMITS.max_cassette_bytes,
            found=manifest.max_total_bytes,
        )
    allowed: dict[str, PolicyFile] = dict(POLICY.inventoried())
    blob_sizes: dict[str, int] = {}
    for entry in blobs.blobs:
        path = BLOB_FOLDER + entry.digest
        allowed[path] = PolicyFile(path=path, role=BLOB_ROLE, required=True)
        if blob_sizes.setdefault(path, entry.size_bytes) != entry.size_bytes:
            raise _refuse("inventory_blob_size", "Two blob entries disagree about one file.", file=BLOB_MANIFEST_FILE)
    seen: set[str] = set()
    total = 0
    for index, file in enumerate(manifest.files):
        place = f"$.files[{index}]"
        policy = allowed.get(file.path)
        if policy is None:
            raise _refuse(
                "inventory_unrelated_file", "The inventory lists an unrelated file.", f"{place}.path", found=file.path
            )
        if file.path in seen:
            raise _refuse("inventory_duplicate", "A file is listed twice.", f"{place}.path", found=file.path)
        seen.add(file.path)
        if file.role and file.role != policy.role:
            raise _refuse(
                "inventory_role", "A file has another role.", f"{place}.role", expected=policy.role, found=file.role
            )
        if file.size_bytes < 0 or not is_digest(file.sha256.lower()):
            raise _refuse("inventory_entry_invalid", "The size or digest of a file is not valid.", place)
        if file.path == _FRAMES and file.size_bytes > _LIMITS.max_provider_tape_bytes:
            raise _refuse("tape_too_large", "The provider tape is too large.", f"{place}.sizeBytes")
        if file.path in blob_sizes and file.size_bytes != blob_sizes[file.path]:
            raise _refuse(
                "inventory_blob_size",
                "A blob has another size than its entry.",
                f"{place}.sizeBytes",
                expected=blob_sizes[file.path],
                found=file.size_bytes,
            )
        total += file.size_bytes
        if total > _LIMITS.max_cassette_bytes:
            raise _refuse("cassette_too_large", "The Cassette is too large.", f"{place}.sizeBytes")
    _check_required(manifest, allowed, seen)
    if manifest.total_bytes != total:
        raise _refuse(
            "inventory_total_bytes",
            "The total size is not the sum of the files.",
            "$.totalBytes",
            expected=total,
            found=manifest.total_bytes,
        )


def _check_required(manifest: CassetteManifest, allowed: dict[str, PolicyFile], seen: set[str]) -> None:
    for path in sorted(allowed):
        required = allowed[path].required or (path == _INITIAL and manifest.mode == "continue-session")
        if required and path not in seen:
            raise _refuse("inventory_required_missing", "A required file is not listed.", "$.files", expected=path)
    if manifest.mode == "create-session" and _INITIAL in seen:
        raise _refuse("inventory_initial_state", "A create-session Cassette must not have an initial state.", "$.files")
    if manifest.mode not in ("create-session", "continue-session"):
        raise _refuse("manifest_mode", "The mode is unknown.", "$.mode", found=manifest.mode)


class DigestWatch:
    """The digest of a large file, computed beside the audit; `check` must be called before the audit's own verdict."""

    def __init__(self, path: Path, file: InventoryFile) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._digest = self._pool.submit(sha256_of, path)
        self._file = file

    def check(self) -> None:
        """Wait for the digest, and compare it. `disk_file_mismatch` comes before whatever the audit found."""
        with self._pool:
            _check_digest(self._file.path, self._file, self._digest.result())


def check_disk(
    root: Path, manifest: CassetteManifest, blobs: BlobManifest, ignored_folders: Collection[str] = ()
) -> DigestWatch | None:
    """The folder against the inventory (§5.2). The digest of a large tape comes later: see `DigestWatch`."""
    inventory = {file.path: file for file in manifest.files}
    found: set[str] = set()
    watch: tuple[Path, InventoryFile] | None = None
    total = 0
    for name, path, size in walk_files(root, ignored_folders):
        if name == MANIFEST_FILE:
            continue
        file = inventory.get(name)
        if file is None:
            raise _refuse("disk_unlisted_file", "A file is not in the inventory.", file=name)
        if size != file.size_bytes:
            raise _refuse(
                "disk_file_mismatch",
                "A file has another size than the inventory says.",
                file=name,
                expected=file.size_bytes,
                found=size,
            )
        if name == _FRAMES and size > _LARGE:
            watch = path, file
        else:
            _check_digest(name, file, sha256_of(path))
        found.add(name)
        total += size
    missing = sorted(inventory.keys() - found)
    if missing:
        raise _refuse("disk_file_missing", "A file of the inventory is missing.", file=missing[0])
    if total > _LIMITS.max_cassette_bytes:
        raise _refuse("cassette_too_large", "The Cassette is too large.")
    for index, entry in enumerate(blobs.blobs):
        if BLOB_FOLDER + entry.digest not in found:
            raise _refuse(
                "blob_file_missing", "A blob has no file.", f"$.blobs[{index}].sha256", file=BLOB_MANIFEST_FILE
            )
    return DigestWatch(*watch) if watch is not None else None


def _check_digest(name: str, file: InventoryFile, digest: str) -> None:
    if digest != file.sha256.lower():
        raise _refuse(
            "disk_file_mismatch",
            "A file has another content than the inventory says.",
            file=name,
            expected=file.sha256,
            found=digest,
        )
    if name.startswith(BLOB_FOLDER) and digest != name.removeprefix(BLOB_FOLDER):
        raise _refuse("blob_content_mismatch", "A blob does not have the content of its name.", file=name)
