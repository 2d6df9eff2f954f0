"""Rows of proposals: changes that only a person may accept, each offered once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.types import Proposal

KINDS = (
    "promotion",
    "demotion",
    "memory",
    "lesson",
    "held",
    "suggestion",
    "archive",
    "domain-edit",
    "conflict",
    "prune",
)
_COLUMNS = "id, kind, payload, why, source, diff, status, created_at, decided_at, origin, effect"


class Proposals:
    """The proposals of one group."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def propose(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        why: str,
        key: str,
        moment: str,
        source: str = "",
        diff: str = "",
        origin: str = "",
        effect: str = "",
        text: str = "",
    ) -> Proposal | None:
        """Offer a change; None when the same `key` was offered before, whatever became of it.

        `origin` is who said it, `effect` what accepting it does, `text` what `of_text` finds it by.
        """
        if kind not in KINDS:
            raise InvalidValue(f"kind {kind!r} is no kind of proposal", f"one of: {', '.join(KINDS)}")
        proposal = Proposal(
            id=f"prop-{uuid.uuid4().hex[:12]}",
            kind=kind,
            payload=payload,
            why=why,
            source=source,
            diff=diff,
            status="open",
            created_at=moment,
            origin=origin,
            effect=effect,
        )
        with self.db.transaction():
            if self.find(kind, key) is not None:
                return None
            self.db.execute(
                "INSERT INTO proposals "
                "(id, kind, payload, why, source, diff, status, fingerprint, created_at, origin, effect, text_key) "
                "VALUES (:id, :kind, :payload, :why, :source, :diff, :status, :fingerprint, :created_at, :origin, "
                ":effect, :text_key)",
                {
                    **asdict(proposal),
                    "payload": json.dumps(payload, ensure_ascii=False),
                    "fingerprint": _key(kind, key),
                    "text_key": fingerprint(text) if text else "",
                },
            )
        return proposal

    def find(self, kind: str, key: str) -> Proposal | None:
        """The proposal with this key, open or decided."""
        sql = f"SELECT {_COLUMNS} FROM proposals WHERE fingerprint = :key"  # noqa: S608
        rows = self.db.query(sql, {"key": _key(kind, key)})
        return _proposal(rows[0]) if rows else None

    def of_text(self, text: str) -> list[Proposal]:
        """The proposals about this text, open or decided."""
        sql = f"SELECT {_COLUMNS} FROM proposals WHERE text_key = :key AND text_key <> ''"  # noqa: S608
        return [_proposal(row) for row in self.db.query(sql, {"key": fingerprint(text)})]

    def has(self, proposal_id: str) -> bool:
        return bool(self.db.query("SELECT 1 FROM proposals WHERE id = :id", {"id": proposal_id}))

    def get(self, proposal_id: str) -> Proposal:
        rows = self.db.query(f"SELECT {_COLUMNS} FROM proposals WHERE id = :id", {"id": proposal_id})  # noqa: S608
        if not rows:
            raise NotFound(f"there is no proposal {proposal_id[:80]!r}", "see: nanoclaw-memory review")
        return _proposal(rows[0])

    def listed(self, status: str = "open", kind: str = "") -> list[Proposal]:
        """Proposals of one status, oldest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM proposals WHERE status = :status AND (:kind = '' OR kind = :kind) "  # noqa: S608
            "ORDER BY number"
        )
        return [_proposal(row) for row in self.db.query(sql, {"status": status, "kind": kind})]

    def decide(self, proposal_id: str, accepted: bool, moment: str) -> Proposal:
        """Close an open proposal; what it means is the caller's to carry out, in the same transaction."""
        with self.db.transaction():
            changed = self.db.update(
                "UPDATE proposals SET status = :status, decided_at = :moment "
                "WHERE id = :id AND status = 'open'",
                {"id": proposal_id, "status": "accepted" if accepted else "rejected", "moment": moment},
            )
            proposal = self.get(proposal_id)
            if not changed:
                raise InvalidValue(
                    f"proposal {proposal_id} was {proposal.status} already", "see: nanoclaw-memory review"
                )
        return proposal

    def reopen(self, proposal_id: str, moment: str) -> Proposal:
        """Let a decided proposal wait again; what its decision changed is the caller's to take back."""
        with self.db.transaction():
            # The moment stays: of two machines' versions the later one counts.
            self.db.execute(
                "UPDATE proposals SET status = 'open', decided_at = :moment WHERE id = :id",
                {"id": proposal_id, "moment": moment},
            )
            return self.get(proposal_id)

    def take_back(self, proposal_id: str) -> int:
        """Delete an open proposal by its id; returns 1 if there was one."""
        with self.db.transaction():
            return self.db.update(
                "DELETE FROM proposals WHERE id = :id AND status = 'open'", {"id": proposal_id}
            )

    def reword(self, proposal_id: str, payload: Mapping[str, Any]) -> None:
        """Give an open proposal other words; what it was made from stays its key."""
        with self.db.transaction():
            self.db.execute(
                "UPDATE proposals SET payload = :payload WHERE id = :id AND status = 'open'",
                {"id": proposal_id, "payload": json.dumps(payload, ensure_ascii=False)},
            )

    def withdraw(self, kind: str, key: str) -> None:
        """Take an open proposal back: what it was about is gone. Inside a transaction."""
        self.db.execute(
            "DELETE FROM proposals WHERE fingerprint = :key AND status = 'open'", {"key": _key(kind, key)}
        )


def _key(kind: str, key: str) -> str:
    return fingerprint(f"{kind}\n{key}")


def _proposal(row: Row) -> Proposal:
    proposal_id, kind, payload, why, source, diff, status, created, decided, origin, effect = row
    return Proposal(
        id=proposal_id,
        kind=kind,
        payload=json.loads(payload),
        why=why,
        source=source,
        diff=diff,
        status=status,
        created_at=created,
        decided_at=decided,
        origin=origin,
        effect=effect,
    )
