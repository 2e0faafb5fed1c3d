"""How fast a Cassette replays headless: frames a second, peak memory, and where the time goes.

`python -m tests.bench.replay [MB…]` makes Codex Cassettes with tapes of about 5 and 120 MB of generated rollouts, by
the ordinary import, and replays them with every assertion and commit. Each replay runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.store import ArtifactStore
from cassettes.playback import surface as surface_module
from cassettes.playback.headless import replay
from cassettes.playback.presentation import Presentation
from cassettes.transcripts.importing import import_transcript

MEGABYTE = 1_000_000
SIZES = (5, 120)
_BEGIN = datetime(2026, 5, 1, 10, tzinfo=UTC)


def rollout(path: Path, megabytes: int) -> Path:
    """A Codex rollout whose tape will have about this size: Turns with answers and commands with output."""
    at = _BEGIN
    words = " ".join(f"word{number}" for number in range(60))
    output = "\n".join(f"line {number}: the quick brown fox jumps over the lazy dog" for number in range(12))
    size, call = 0, 0
    with path.open("w") as file:

        def add(kind: str, payload: dict[str, Any]) -> None:
            nonlocal at
            at += timedelta(milliseconds=40)
            stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            file.write(json.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + "\n")

        add("session_meta", {"id": "thread-1", "cwd": "/home/dev/project", "cli_version": "0.100.0"})
        while size < megabytes * MEGABYTE:
            add("event_msg", {"type": "user_message", "message": f"Prompt {call}"})
            user = [{"type": "input_text", "text": f"Prompt {call}"}]
            add("response_item", {"type": "message", "role": "user", "content": user})
            for _ in range(20):
                call += 1
                said = [{"type": "output_text", "text": f"{call} {words}"}]
                add("response_item", {"type": "message", "role": "assistant", "content": said})
                arguments = json.dumps({"command": ["bash", "-lc", f"run {call}"]})
                made = {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": f"call-{call}"}
                add("response_item", made)
                told = json.dumps({"output": output, "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
                add("response_item", {"type": "function_call_output", "call_id": f"call-{call}", "output": told})
                size += 5_600  # bytes that these become on the tape, as measured
    return path


def in_process(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, seconds and peak MiB of work in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        started = time.perf_counter()
        result = work()
        taken = time.perf_counter() - started
        sender.send((result, taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))

    process = context.Process(target=run)
    process.start()
    outcome: tuple[Any, float, float] = receiver.recv()
    process.join()
    return outcome


def jump_to_last_checkpoint(path: Path) -> str:
    """What a viewer does who opens a session at its last checkpoint."""
    last = len(CassetteFolder(path).plan().checkpoints) - 1
    with tempfile.TemporaryDirectory() as folder:
        presentation = Presentation(path, Path(folder), {"checkpoint": last})
        while len(presentation.surface.landed) <= last and not presentation.finished:
            presentation.advance(0.0)
        presentation.close()
        return presentation.surface.phase


def stages(path: Path) -> dict[str, float]:
    """Share of the time by stage, measured with a timer around each (which costs some itself)."""
    spent: dict[str, float] = {}

    def timed(owner: Any, name: str, stage: str) -> None:
        real = getattr(owner, name)

        def wrapper(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return real(*arguments, **named)
            finally:
                spent[stage] = spent.get(stage, 0.0) + time.perf_counter() - started

        setattr(owner, name, wrapper)

    from cassettes.core import tape as core_tape
    from cassettes.host.host import Host
    from cassettes.playback.tape import TapeConnection
    from cassettes.providers.codex.adapter import CodexAdapter

    assert core_tape
    timed(TapeConnection, "match", "match")
    timed(TapeConnection, "release", "decode, deliver")
    timed(CodexAdapter, "receive", "adapt")
    timed(Host, "apply", "commit")
    timed(surface_module.Surface, "_reconcile", "checkpoints")
    started = time.perf_counter()
    replay(path)
    total = time.perf_counter() - started
    spent["rest"] = total - sum(spent.values())
    return {stage: seconds / total for stage, seconds in sorted(spent.items(), key=lambda one: -one[1])}


def report(sizes: Iterable[int]) -> None:
    """Print the table for tapes of so many megabytes."""
    print(f"{'tape MB':>8} {'frames':>8} {'replay s':>9} {'frames/s':>9} {'MB/s':>6} {'MiB':>6} {'jump s':>7}  verdict")
    for megabytes in sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = rollout(Path(folder) / "rollout.jsonl", megabytes)
            path = import_transcript(source, ArtifactStore(Path(folder) / "home")).path
            frames = json.loads((path / "provider" / "manifest.json").read_bytes())["frameCount"]
            size = (path / "provider" / "frames.jsonl").stat().st_size / MEGABYTE
            verdict, seconds, peak = in_process(lambda path=path: replay(path).summary)  # type: ignore[misc]
            _, jump, _ = in_process(lambda path=path: jump_to_last_checkpoint(path))  # type: ignore[misc]
            print(
                f"{size:8.1f} {frames:8} {seconds:9.2f} {frames / seconds:9.0f} {size / seconds:6.1f} {peak:6.0f}"
                f" {jump:7.2f}  {verdict}"
            )
            shares, _, _ = in_process(lambda path=path: stages(path))  # type: ignore[misc]
            print("         " + ", ".join(f"{stage} {share:.0%}" for stage, share in shares.items()), flush=True)


def main() -> None:
    """The sizes from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), help="megabytes")
    report(parser.parse_args().sizes)


if __name__ == "__main__":
    main()
