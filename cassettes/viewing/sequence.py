"""Puts a viewer's batches in order. The channel layer may lose and delay; a viewer sees neither."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]

_HELD = 256  # live batches kept while a catch-up is under way


class Sequence:
    """Decides which batch goes out now. `wants` is true when something is missing and nobody was asked yet."""

    def __init__(self) -> None:
        self.generation = 0
        self.last = 0  # newest batch that went out
        self.wants = False
        self._greeted = False
        self._asking = False
        self._held: dict[int, str] = {}

    def hello(self, generation: int, after: int) -> None:
        """The viewer says what it has."""
        self._greeted = True
        self._turn_to(generation, after)
        self.wants = True

    def ask(self) -> tuple[int, int]:
        """What to ask the supervisor for: the generation and the last batch that the viewer has."""
        self.wants = False
        self._asking = True
        return self.generation, self.last

    def live(self, batch: JsonObject) -> list[str]:
        """A batch that was just made; gives what may go out."""
        if not self._greeted or batch["generation"] < self.generation:
            return []
        if batch["generation"] > self.generation:
            self._turn_to(batch["generation"], 0)
        if batch["seq"] <= self.last:
            return []
        if len(self._held) < _HELD:
            self._held[batch["seq"]] = batch["text"]
        if self._asking:
            return []
        return self._contiguous()

    def caught_up(self, batch: JsonObject) -> list[str]:
        """A piece of what was asked for; gives what may go out."""
        if batch["generation"] < self.generation:
            return []
        if batch["generation"] > self.generation:
            self._turn_to(batch["generation"], 0)
        if batch["from"] > self.last + 1:  # an answer to an older question
            return []
        self.last = max(self.last, batch["seq"])
        texts = [batch["text"]]
        if batch["done"]:
            self._asking = False
            texts += self._contiguous()
        return texts

    def behind(self, generation: int, seq: int) -> bool:
        """Is there a newer batch than those that went out? Then an answer that was awaited is taken as lost."""
        return self._greeted and (generation > self.generation or (generation == self.generation and seq > self.last))

    def _contiguous(self) -> list[str]:
        texts = []
        while self.last + 1 in self._held:
            self.last += 1
            texts.append(self._held.pop(self.last))
        self._held = {seq: text for seq, text in self._held.items() if seq > self.last}
        self.wants = bool(self._held)
        return texts

    def _turn_to(self, generation: int, after: int) -> None:
        self.generation = generation
        self.last = after
        self._held = {}
        self._asking = False
