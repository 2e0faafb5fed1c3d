"""How fast a Cassette is validated: beside sha256sum and a bare JSON parse, in one run.

`python -m tests.bench.validate [MB…]` makes Cassettes of 1, 20 and 250 MB in two shapes: many small frames, few large
ones. Cold: the files were dropped from the page cache; warm: they were read a moment before. Each measurement runs in
a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson

from cassettes.artifacts.archives import import_archive
from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.store import ArtifactStore
from tests.making import grow
from tests.samples import CASSETTES

MEGABYTE = 1_000_000
SIZES = (1, 20, 250)


# ------------------------------------------------------------------------------------------------- Cassettes
def small_frame(number: int) -> bytes:
    """A streamed word, as a provider sends thousands of them."""
    params = {"threadId": "thread-1", "turnId": "turn-1", "itemId": f"item-{number // 50}", "delta": f"word {number} "}
    return json.dumps({"method": "item/agentMessage/delta", "params": params}, separators=(",", ":")).encode() + b"\n"


def large_frame(number: int) -> bytes:
    """A command with a long output."""
    output = "".join(f"{number}.{line}: the quick brown fox\\n jumps over the lazy dog\n" for line in range(10_000))
    item = {"type": "commandExecution", "id": f"item-{number}", "aggregatedOutput": output, "exitCode": 0}
    params = {"threadId": "thread-1", "turnId": "turn-1", "item": item}
    return json.dumps({"method": "item/completed", "params": params}, separators=(",", ":")).encode() + b"\n"


SHAPES = {"many small frames": small_frame, "few large frames": large_frame}


def made(folder: Path, megabytes: int, payload: Callable[[int], bytes]) -> Path:
    """A valid Cassette of about this size."""
    imported = import_archive(CASSETTES / "small-create.tar.gz", ArtifactStore(folder / "base"))
    cassette = folder / "cassette"
    shutil.copytree(imported.path, cassette)
    grow(cassette, megabytes * MEGABYTE, payload)
    return cassette


# ------------------------------------------------------------------------------------------------- contenders
def sha256sum(cassette: Path) -> None:
    """The program `sha256sum` over every file."""
    files = [str(path) for path in cassette.rglob("*") if path.is_file()]
    subprocess.run(["sha256sum", *files], check=True, stdout=subprocess.DEVNULL)


def parse_lines(cassette: Path) -> None:
    """orjson's parse of the frame lines, nothing else."""
    with (cassette / "provider" / "frames.jsonl").open("rb") as file:
        for line in file:
            orjson.loads(line)


def validate(cassette: Path) -> None:
    """Ours, complete."""
    verify_static(cassette)


CONTENDERS = {"sha256sum": sha256sum, "orjson parse": parse_lines, "validate": validate}


def measured(work: Callable[[Path], None], cassette: Path, *, cold: bool) -> tuple[float, float]:
    """Seconds and peak MiB of one run in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        prepare(cassette, cold=cold)
        started = time.perf_counter()
        work(cassette)
        taken = time.perf_counter() - started
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        sender.send((taken, max(own, children) / 1024))

    process = context.Process(target=run)
    process.start()
    result: tuple[float, float] = receiver.recv()
    process.join()
    return result


def prepare(cassette: Path, *, cold: bool) -> None:
    """Drop the files from the page cache, or bring them there."""
    for path in cassette.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                if cold:
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                else:
                    while file.read(1 << 20):
                        pass


def report(sizes: Iterable[int]) -> None:
    """Print the table for Cassettes of so many megabytes."""
    print(f"{'shape':18} {'MB':>5} {'frames':>8}  {'contender':14} {'cold s':>8} {'warm s':>8} {'MB/s':>7} {'MiB':>5}")
    for shape, payload in SHAPES.items():
        for megabytes in sizes:
            with tempfile.TemporaryDirectory() as folder:
                cassette = made(Path(folder), megabytes, payload)
                size = sum(path.stat().st_size for path in cassette.rglob("*") if path.is_file()) / MEGABYTE
                frames = json.loads((cassette / "provider" / "manifest.json").read_bytes())["frameCount"]
                for name, work in CONTENDERS.items():
                    cold, _ = measured(work, cassette, cold=True)
                    warm, peak = min(measured(work, cassette, cold=False) for _ in range(3))
                    rate = size / warm
                    print(
                        f"{shape:18} {size:5.0f} {frames:8}  {name:14} {cold:8.3f} {warm:8.3f} {rate:7.0f} {peak:5.0f}",
                        flush=True,
                    )


def main() -> None:
    """The sizes from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), help="megabytes")
    report(parser.parse_args().sizes)


if __name__ == "__main__":
    main()
