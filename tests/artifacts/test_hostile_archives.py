"""Archives from strangers: what is refused before anything is written, and with which code."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cassettes.artifacts.members import MAX_MEMBERS, Intake, clean_name
from cassettes.artifacts.streams import Bounded, Gzip, Plain, Reader, Zstandard
from cassettes.artifacts.tarread import read_tar
from cassettes.artifacts.zipread import read_zip
from cassettes.core.errors import InputRejected


def code_of(action: Callable[[], Any]) -> str:
    with pytest.raises(InputRejected) as caught:
        action()
    assert caught.value.hint
    return caught.value.code


# ------------------------------------------------------------------------------------------- names
@pytest.mark.parametrize(
    ("name", "clean"),
    [("a/b.json", "a/b.json"), ("./a", "a"), ("././a/", "a"), ("./", ""), (".", ""), ("ünïcode", "ünïcode")],
)
def test_plain_relative_names_are_taken(name: str, clean: str) -> None:
    assert clean_name(name) == clean


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("/etc/passwd", "archive_unsafe_path"),
        ("../x", "archive_unsafe_path"),
        ("a/../b", "archive_unsafe_path"),
        ("a/./b", "archive_unsafe_path"),
        ("a//b", "archive_unsafe_path"),
        ("a\\b", "archive_unsafe_path"),
        ("C:x", "archive_unsafe_path"),
        ("a\nb", "archive_unsafe_path"),
        ("a\0b", "archive_unsafe_path"),
        ("bad\udc80utf", "archive_unsafe_path"),
        ("x" * 256, "archive_name_too_long"),
        ("é" * 128, "archive_name_too_long"),
        ("/".join("abcdefghi"), "archive_name_too_long"),
        ("a/" * 600, "archive_name_too_long"),
    ],
)
def test_unsafe_names_are_refused(name: str, code: str) -> None:
    assert code_of(lambda: clean_name(name)) == code


@given(st.text(max_size=40))
def test_a_taken_name_never_leaves_its_folder(name: str) -> None:
    try:
        clean = clean_name(name)
    except InputRejected:
        return
    assert not clean.startswith(("/", "\\"))
    assert ".." not in clean.split("/")


@pytest.mark.parametrize(
    "names",
    [
        ("a", "a"),
        ("a", "A"),
        ("a", "./a"),
        ("straße", "STRASSE"),
        ("é", "e\u0301"),
        ("a/b", "a"),
        ("a", "a/b"),
        ("a/b", "A/c"),
    ],
)
def test_names_that_one_file_system_takes_for_the_same_collide(names: tuple[str, str]) -> None:
    intake = Intake()
    intake.file(names[0])
    assert code_of(lambda: intake.file(names[1])) == "archive_duplicate_member"


def test_members_and_bytes_have_a_budget() -> None:
    intake = Intake(max_bytes=10, max_members=2)
    intake.folder("a")
    intake.file("a/b")
    intake.take(10)
    assert code_of(lambda: intake.take(1)) == "archive_too_large"
    assert code_of(lambda: intake.folder("c")) == "archive_too_many_members"


# ------------------------------------------------------------------------------------------- tar
def tar_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, **members: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for attribute, value in members.items():
        setattr(info, attribute, value)
    return info


def tar_content(data: bytes) -> dict[str, bytes]:
    return reader_content(Plain(io.BytesIO(data)))


def reader_content(reader: Reader) -> dict[str, bytes]:
    return {member.name: b"".join(member.chunks()) for member in read_tar(reader)}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_common_tar_dialect_is_read(form: int) -> None:
    long = "folder/" + "n" * 90 + "/" + "m" * 60
    data = tar_of((entry("a", tarfile.DIRTYPE), b""), (entry("a/b"), b"x" * 1_000), (entry(long), b"y"), form=form)
    assert tar_content(data) == {"a/": b"", "a/b": b"x" * 1_000, long: b"y"}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (tarfile.SYMTYPE, "archive_link"),
        (tarfile.LNKTYPE, "archive_link"),
        (tarfile.CHRTYPE, "archive_special_entry"),
        (tarfile.BLKTYPE, "archive_special_entry"),
        (tarfile.FIFOTYPE, "archive_special_entry"),
        (tarfile.GNUTYPE_SPARSE, "archive_sparse"),
        (b"V", "archive_special_entry"),
    ],
)
def test_links_devices_and_sparse_files_are_refused(kind: bytes, code: str) -> None:
    data = tar_of((entry("a", kind, linkname="/etc/passwd"), b""), form=tarfile.GNU_FORMAT)
    assert code_of(lambda: tar_content(data)) == code


def test_sparse_files_in_pax_form_are_refused() -> None:
    data = tar_of((entry("a", pax_headers={"GNU.sparse.major": "1"}), b"x"))
    assert code_of(lambda: tar_content(data)) == "archive_sparse"


def test_an_over_long_header_is_refused_before_it_is_read() -> None:
    info = entry("././@LongLink", tarfile.GNUTYPE_LONGNAME)
    info.size = 1 << 40
    assert code_of(lambda: tar_content(info.tobuf(tarfile.GNU_FORMAT))) == "archive_name_too_long"


@pytest.mark.parametrize("cut", [10, 512, 700, 1_024, 1_536])
def test_a_cut_tar_is_refused(cut: int) -> None:
    data = tar_of((entry("a"), b"x" * 600), form=tarfile.USTAR_FORMAT)[:1_536]
    assert code_of(lambda: tar_content(data[:cut])) == "archive_truncated"


def test_a_damaged_header_and_data_after_the_end_are_refused() -> None:
    data = bytearray(tar_of((entry("a"), b"x")))
    damaged = bytes(data[:0]) + bytes([data[0] ^ 1]) + bytes(data[1:])
    assert code_of(lambda: tar_content(damaged)) == "archive_corrupt"
    assert code_of(lambda: tar_content(bytes(data) + b"tail")) == "archive_trailing_data"
    assert code_of(lambda: tar_content(bytes(1_024))) == "archive_empty"


@given(st.binary(max_size=2_000))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        tar_content(data)
    except InputRejected as error:
        assert error.code.startswith("archive_")


# ------------------------------------------------------------------------------------------- compression
def packed(kind: str, data: bytes) -> bytes:
    return gzip.compress(data) if kind == "gzip" else zstandard.ZstdCompressor(write_checksum=True).compress(data)


def opened(kind: str, data: bytes) -> Reader:
    return Gzip(io.BytesIO(data)) if kind == "gzip" else Zstandard(io.BytesIO(data))


def drained(reader: Reader) -> bytes:
    parts = []
    while piece := reader.read(1_000):
        assert len(piece) <= 1_000
        parts.append(piece)
    return b"".join(parts)


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_compressed_streams_are_read_in_small_steps(kind: str) -> None:
    data = bytes(range(256)) * 5_000
    assert drained(opened(kind, packed(kind, data))) == data
    assert drained(opened(kind, packed(kind, data) + packed(kind, b"more"))) == data + b"more"


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_cut_or_damaged_stream_is_refused(kind: str) -> None:
    data = packed(kind, bytes(range(256)) * 50)
    assert code_of(lambda: drained(opened(kind, data[:-3]))) == "archive_truncated"
    assert code_of(lambda: drained(opened(kind, data + b"tail"))) in ("archive_corrupt", "archive_truncated")
    middle = len(data) // 2
    damaged = data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]
    assert code_of(lambda: drained(opened(kind, damaged))) in ("archive_corrupt", "archive_truncated")


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_bomb_stops_at_the_budget(kind: str) -> None:
    bomb = packed(kind, bytes(20_000_000))
    assert len(bomb) < 30_000
    assert code_of(lambda: drained(Bounded(opened(kind, bomb), 1_000_000))) == "archive_too_large"


# ------------------------------------------------------------------------------------------- zip
def zip_of(*members: tuple[zipfile.ZipInfo | str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for info, data in members:
            archive.writestr(info, data, compression)
    return out.getvalue()


def zip_content(data: bytes) -> dict[str, bytes]:
    return {
        member.name: b"" if member.is_folder else b"".join(member.chunks()) for member in read_zip(io.BytesIO(data))
    }


def zip_entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def test_zip_members_are_read() -> None:
    assert zip_content(zip_of(("a/", b""), ("a/b", b"x" * 9_000))) == {"a/": b"", "a/b": b"x" * 9_000}


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        (stat.S_IFLNK | 0o777, "archive_link"),
        (stat.S_IFCHR, "archive_special_entry"),
        (stat.S_IFIFO, "archive_special_entry"),
        (stat.S_IFDIR, "archive_special_entry"),
    ],
)
def test_zip_members_that_are_not_files_are_refused(mode: int, code: str) -> None:
    assert code_of(lambda: zip_content(zip_of((zip_entry("a", mode), b"/etc/passwd")))) == code


def patched(data: bytes, marker: bytes, offset: int, value: bytes) -> bytes:
    at = data.rindex(marker) + offset
    return data[:at] + value + data[at + len(value) :]


def test_encrypted_zip_members_are_refused() -> None:
    data = patched(zip_of(("a", b"x")), b"PK\x01\x02", 8, b"\x01\x00")
    assert code_of(lambda: zip_content(data)) == "archive_encrypted"


def test_other_zip_compressions_are_refused() -> None:
    assert code_of(lambda: zip_content(zip_of(("a", b"x" * 90), compression=zipfile.ZIP_BZIP2))) == (
        "archive_unsupported"
    )


@pytest.mark.parametrize("size", [5, 5_000])
def test_a_zip_member_that_lies_about_its_size_is_refused(size: int) -> None:
    data = patched(zip_of(("a", b"x" * 1_000)), b"PK\x01\x02", 24, struct.pack("<I", size))
    assert code_of(lambda: zip_content(data)) in ("archive_corrupt", "archive_size_mismatch")


def test_zip_members_that_share_bytes_are_refused() -> None:
    """One deflated piece of data that a hundred directory entries point to."""
    data = zip_of(("a", bytes(1 << 20)), ("b", b"x"))
    directory = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", directory + 4)
    entry, rest = data[directory:second], data[second:]
    entries = b"".join(entry.replace(b"a", bytes([ord("c") + number]), 1) for number in range(20))
    bomb = bytearray(data[:directory] + entries + rest)
    at = bomb.rindex(b"PK\x05\x06")
    bomb[at + 8 : at + 16] = struct.pack("<HHI", 21, 21, len(entries) + len(rest) - 22)
    assert code_of(lambda: zip_content(bytes(bomb))) == "archive_overlap"


def test_an_archive_inside_an_archive_is_a_file_like_any_other() -> None:
    inner = zip_of(("a", bytes(1 << 20)))
    assert zip_content(zip_of(("inner.zip", inner))) == {"inner.zip": inner}


def test_a_cut_zip_and_one_with_a_huge_directory_are_refused() -> None:
    data = zip_of(("a", b"x" * 1_000))
    assert code_of(lambda: zip_content(data[:-30])) == "archive_truncated"
    many = patched(data, b"PK\x05\x06", 10, struct.pack("<H", MAX_MEMBERS + 1))
    assert code_of(lambda: zip_content(many)) == "archive_too_many_members"
    assert code_of(lambda: zip_content(zip_of())) == "archive_empty"


@given(st.data())
def test_a_damaged_zip_is_read_or_refused(data: st.DataObject) -> None:
    archive = bytearray(zip_of(("a", b"x" * 50), ("b/c", b"y" * 50)))
    for _ in range(data.draw(st.integers(1, 6))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    try:
        zip_content(bytes(archive))
    except InputRejected as error:
        assert error.code.startswith("archive_")
