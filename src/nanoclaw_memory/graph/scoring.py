"""The combined score: entity matches always above keyword matches, activation decides within a tier."""

from __future__ import annotations

import msgspec

TIER = 65
BOOST = 100.0


class Scoring(msgspec.Struct, frozen=True):
    """Weights of relevance and activation, and what counts as linked."""

    relevance_weight: float = 0.7
    activation_weight: float = 0.3
    most_linked: int = 4
    link_weight: float = 2.0

    def combined(self, score: int, warmth: float) -> float:
        """The score of a hit whose activation is `warmth` (0 to 1) of the hottest one's."""
        boost = BOOST if score >= TIER else 0.0
        return boost + self.relevance_weight * score / 100 + self.activation_weight * min(warmth, 1.0)
