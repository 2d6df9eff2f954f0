"""A deterministic embedder: texts that share words are near each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoclaw_memory.providers.calibration import LOCAL_WEIGHTS
from nanoclaw_memory.providers.embedder import Identity, checked
from nanoclaw_memory.text import words

if TYPE_CHECKING:
    from nanoclaw_memory.providers.embedder import Vectors


@dataclass(frozen=True)
class WordHashEmbedder:
    """Each word adds a pseudo-random direction of its own; the sum is the text's vector."""

    dimensions: int = 64
    model: str = "word-hash"
    weights: tuple[float, float] = LOCAL_WEIGHTS

    @property
    def identity(self) -> Identity:
        return Identity("fake", self.model, self.dimensions)

    def embed_documents(self, texts: Sequence[str], deadline: float | None = None) -> Vectors:
        return checked([self._vector(text) for text in texts], len(texts), self.identity)

    def embed_query(self, text: str, deadline: float | None = None) -> Vectors:
        row: Vectors = self.embed_documents([text])[0]
        return row

    def _vector(self, text: str) -> list[float]:
        total = [0.0] * self.dimensions
        for word in words(text) or ["(empty)"]:
            noise = hashlib.shake_256(f"{self.model}:{word}".encode()).digest(self.dimensions)
            for axis, byte in enumerate(noise):
                total[axis] += byte - 127.5
        return total
