"""`make fuzz`: coverage-guided attacks (atheris) on the import of archives and on every parser.

`python -m tests.fuzz TARGET [libFuzzer options]`, for example `-max_total_time=600`. Whatever the bytes are, only typed
errors may come out, and no file may appear outside the store. `python -m tests.fuzz` lists the targets.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["cassettes"]):
    from cassettes.artifacts.archives import import_archive, import_folder
    from cassettes.artifacts.clean_lines import clean_values
    from cassettes.artifacts.protocol_stream import MalformedError, ValueStream, parse_values
    from cassettes.artifacts.redact_text import Redactor
    from cassettes.artifacts.secrets import find_in
    from cassettes.artifacts.store import ArtifactStore
    from cassettes.core import jsontext
    from cassettes.core.activity import check_playable, check_portable, check_timeline, decode_line
    from cassettes.core.blobs import check_entry, decode_blob_manifest
    from cassettes.core.checkpoints import check_plan, decode_plan
    from cassettes.core.errors import RepriseError
    from cassettes.core.manifest import decode_manifest
    from cassettes.core.state import check_artifact_state, check_state, decode_state
    from cassettes.core.tape import decode_frame_block, decode_frame_line
    from cassettes.core.tape import decode_manifest as decode_tape_manifest
    from cassettes.providers.value_audit import audit_values
    from cassettes.transcripts.reading import read_transcript

from tests.making import reseal
from tests.samples import CASSETTES, transcripts

METHODS = frozenset({"account/login/start"})
EXAMPLE = CASSETTES / "example"
_SCRATCH = Path(tempfile.mkdtemp(prefix="reprise-fuzz-"))


def _fresh() -> Path:
    folder = _SCRATCH / "now"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def archive(data: bytes) -> None:
    """The import of an archive: typed errors, nothing outside the store, nothing half."""
    home = _fresh() / "home"
    store = ArtifactStore(home)
    try:
        import_archive(io.BytesIO(data), store)
    except RepriseError:
        assert list(store.ids()) == []
    assert [path.name for path in home.parent.iterdir()] in ([], ["home"])
    assert not [path for path in store.incoming.glob("*") if not path.name.endswith(".lock")]


def cassette(data: bytes) -> None:
    """A Cassette one of whose files is anything, resealed: the first byte says which file."""
    names = sorted(path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*") if path.is_file())
    if not data:
        return
    folder = Path(shutil.copytree(EXAMPLE, _fresh() / "cassette"))
    name = names[data[0] % len(names)]
    (folder / name).write_bytes(data[1:])
    if name not in ("cassette.json", "provider/manifest.json"):
        reseal(folder)
    elif name == "provider/manifest.json":
        reseal(folder, tape=False)
    store = ArtifactStore(folder.parent / "home")
    try:
        import_folder(folder, store)
    except RepriseError:
        assert list(store.ids()) == []


def parsers(data: bytes) -> None:
    """Every reader of a file of the contract: the first byte says which one."""
    if not data:
        return
    reader = _READERS[data[0] % len(_READERS)]
    with suppress(RepriseError):
        reader(data[1:])


def _activity(data: bytes) -> None:
    events = [decode_line(line, number) for number, line in enumerate(data.splitlines(), 1)]
    check_timeline(events)
    for event in events:
        check_portable(event)
    check_playable(events)


def _plan(data: bytes) -> None:
    check_plan(decode_plan(data), ["connection-1"], [])


def _state(data: bytes) -> None:
    state = decode_state(data, file="expected-state.json")
    check_state(state)
    check_artifact_state(state, file="expected-state.json", root_session_id=state.agent.root_session_id)


def _blobs(data: bytes) -> None:
    for index, entry in enumerate(decode_blob_manifest(data).blobs):
        check_entry(entry, index)


def _frames(data: bytes) -> None:
    quick = decode_frame_block(data)
    careful = [decode_frame_line(line, number) for number, line in enumerate(io.BytesIO(data), 1)]
    if quick is not None:
        assert [frame.chunk_seq for frame in quick] == [frame.chunk_seq for frame in careful]
        assert [frame.kind for frame in quick] == [frame.kind for frame in careful]


def _values(data: bytes) -> None:
    jsontext.encode_values(jsontext.decode_values(data))


_READERS: list[Callable[[bytes], object]] = [
    decode_manifest, decode_tape_manifest, _activity, _plan, _state, _blobs, _frames, _values,
]  # fmt: skip


def protocol(data: bytes) -> None:
    """The quick proof never says more than the exact audit, and a stream cut anywhere gives the same values."""
    quick = clean_values(data, METHODS)
    try:
        values = parse_values(data)
    except MalformedError:
        assert quick is None
        return
    if quick is not None:
        assert audit_values(values, METHODS) is None
        assert quick == len(values)
    stream = ValueStream()
    try:
        streamed = [*stream.feed(data[: len(data) // 2]), *stream.feed(data[len(data) // 2 :]), *stream.finish()]
    except MalformedError:
        return
    assert streamed == values


def transcript(data: bytes) -> None:
    """The reader of transcripts."""
    path = _fresh() / "transcript.jsonl"
    path.write_bytes(data)
    with suppress(RepriseError):
        read_transcript(path)


def secrets(data: bytes) -> None:
    """The detectors, and the redaction of whatever they find."""
    text = data.decode("utf-8", "replace")
    found = [value for _, value, _ in find_in(text)]
    wrapped = json.dumps({"text": text}).encode() + b"\n"
    clean = json.loads(Redactor(found).json(wrapped))["text"]
    assert len(clean) == len(text)


TARGETS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one for one in (archive, cassette, parsers, protocol, transcript, secrets)
}


def seeds(name: str) -> Path:
    """A folder with what the fuzzer begins with."""
    folder = _SCRATCH / f"seeds-{name}"
    folder.mkdir(exist_ok=True)
    files = sorted(path for path in EXAMPLE.rglob("*") if path.is_file())
    if name == "archive":
        samples = [path.read_bytes() for path in sorted(CASSETTES.glob("small-*.tar.gz"))]
    elif name in ("transcript", "secrets"):
        samples = [path.read_bytes()[:20_000] for path in transcripts()[:6]]
    elif name == "protocol":
        samples = [b'{"method":"a","params":{"cwd":"/x"}}\n{"id":1,"result":{}}\n']
    else:
        count = len(files) if name == "cassette" else len(_READERS)
        samples = [bytes([number]) + path.read_bytes() for path in files for number in range(count)]
    for number, sample in enumerate(samples):
        (folder / str(number)).write_bytes(sample)
    return folder


def main() -> None:
    """Fuzz one target."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"usage: python -m tests.fuzz {{{'|'.join(TARGETS)}}} [-max_total_time=SECONDS …]")
    atheris.Setup([sys.argv[0], *sys.argv[2:], "-print_final_stats=1", str(seeds(name))], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
