"""Calibration of embedders by identity: what their cosines mean, measured once, in one place."""

from __future__ import annotations

import msgspec

# The weights of vector and keyword scores when they are fused: a small model needs more help from words.
LOCAL_WEIGHTS = (0.5, 0.5)
CLOUD_WEIGHTS = (0.7, 0.3)


class Calibration(msgspec.Struct, frozen=True):
    """The figures of one model. Shares are positions between the cosine of unrelated texts (0) and of equal texts
    (1).
    """

    english: bool = False  # it supports no other language: then words count more than meaning
    unrelated: float | None = None  # None: not measured; the mean cosine with an index is used instead
    near: float = 0.2968  # minimal share of a passage that is probably about the question
    same_subject: float = 0.45  # minimal share of one that certainly is, even without common words
    lesson_near: float = 0.34  # minimal share at which meaning alone matches a lesson
    lesson_far: float = 0.24  # below this share a single word does not match
    binds: bool = False  # the heads of `retrieval/constraints.json` read its vectors
    duplicate: float = 0.92  # minimal cosine of two entries that may say the same
    near_unmeasured: float = 0.5  # cosines for unmeasured models
    lesson_near_unmeasured: float = 0.7

    def cosine(self, share: float, unrelated: float | None) -> float | None:
        """Return the cosine at a share, above that of unrelated texts; None if that is unknown."""
        return None if unrelated is None else unrelated + share * (1 - unrelated)


# bench/lessons.py measures `unrelated` and the shares of lessons, bench/continuity.py `near`, bench/locomo.py the
# weights, bench/entries.py `duplicate`.
_MEASURED = {
    "local/e5-small-v2": Calibration(english=True, unrelated=0.744),
    "local/multilingual-e5-small": Calibration(unrelated=0.773, near=0.26, same_subject=0.34, binds=True),
}
_UNMEASURED = Calibration()


def calibration(identity: str) -> Calibration:
    """Return the calibration of the embedder with this key."""
    for start, found in _MEASURED.items():
        if identity.startswith(start):
            return found
    return _UNMEASURED
