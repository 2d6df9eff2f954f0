"""What the cosines of an embedder mean, by its identity: measured once, kept in one place."""

from __future__ import annotations

import msgspec

# How much a vector score and a keyword score count when they are fused: a small model needs more help from words.
LOCAL_WEIGHTS = (0.5, 0.5)
CLOUD_WEIGHTS = (0.7, 0.3)


class Calibration(msgspec.Struct, frozen=True):
    """The figures of one model. Shares lie between the cosine of unrelated texts (0) and that of the same text (1)."""

    english: bool = False  # it knows no other language: then words say more than meaning
    unrelated: float | None = None  # None: not measured; the mean cosine with an index serves instead
    near: float = 0.2968  # share from which a passage is likely about the question
    same_subject: float = 0.45  # share from which it surely is, even where words say nothing
    lesson_near: float = 0.34  # share from which meaning alone calls for a lesson
    lesson_far: float = 0.24  # share below which a single word does not
    binds: bool = False  # the heads of `retrieval/constraints.json` read its vectors
    duplicate: float = 0.92  # cosine from which two entries may say the same
    near_unmeasured: float = 0.5  # cosines that serve while nothing is known of a model
    lesson_near_unmeasured: float = 0.7

    def cosine(self, share: float, unrelated: float | None) -> float | None:
        """The cosine at a share, above that of unrelated texts; None where that is not known."""
        return None if unrelated is None else unrelated + share * (1 - unrelated)


# bench/lessons.py measures `unrelated` and the shares of lessons, bench/continuity.py `near`, bench/locomo.py the
# weights, bench/entries.py `duplicate`.
_MEASURED = {
    "local/e5-small-v2": Calibration(english=True, unrelated=0.744),
    "local/multilingual-e5-small": Calibration(unrelated=0.773, near=0.26, same_subject=0.34, binds=True),
}
_UNMEASURED = Calibration()


def calibration(identity: str) -> Calibration:
    """The calibration of the embedder with this key."""
    for start, found in _MEASURED.items():
        if identity.startswith(start):
            return found
    return _UNMEASURED
