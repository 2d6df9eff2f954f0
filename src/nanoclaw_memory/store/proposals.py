"""The table of proposals: changes that only a person may accept, each proposed once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.store.database import Params, Row
from nanoclaw_memory.store.table import Table, insertion
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


class Proposals(Table[Proposal]):
    """The proposals of one group."""

    table = "proposals"
    columns = ", ".join(Proposal.__struct_fields__)
    value = Proposal

    def read(self, row: Row) -> Proposal:
        return super().read((*row[:2], _payload(row[2]), *row[3:]))

    def select(self, rest: str, params: Params | None = None) -> list[Proposal]:
        """The proposals that the rest of a query names, but for those whose payload is damaged."""
        return [one for one in super().select(rest, params) if one.payload]

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
        """Propose a change; return None if the same `key` was proposed before, whatever its status.

        `origin` is the author, `effect` what accepting it does, `text` what `of_text` finds it by.
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
            if self._was_offered(kind, key):
                return None
            row = asdict(proposal) | {
                "payload": json.dumps(payload, ensure_ascii=False),
                "fingerprint": _key(kind, key),
                "text_key": fingerprint(text) if text else "",
            }
            self.db.execute(insertion("proposals", row), row)
        return proposal

    def find(self, kind: str, key: str) -> Proposal | None:
        """Return the proposal with this key, open or decided."""
        return self.first("WHERE fingerprint = :key", {"key": _key(kind, key)})

    def _was_offered(self, kind: str, key: str) -> bool:
        sql = "SELECT 1 FROM proposals WHERE fingerprint = :key"
        return bool(self.db.query(sql, {"key": _key(kind, key)}))

    def of_text(self, text: str) -> list[Proposal]:
        """Return the proposals about this text, open or decided."""
        return self.select("WHERE text_key = :key AND text_key <> ''", {"key": fingerprint(text)})

    def has(self, proposal_id: str) -> bool:
        return bool(self.db.query("SELECT 1 FROM proposals WHERE id = :id", {"id": proposal_id}))

    def get(self, proposal_id: str) -> Proposal:
        found = self.first("WHERE id = :id", {"id": proposal_id})
        if found is None:
            raise NotFound(f"there is no proposal {proposal_id[:80]!r}", "see: nanoclaw-memory review")
        return found

    def listed(self, status: str = "open", kind: str = "") -> list[Proposal]:
        """Return proposals of one status, oldest first."""
        rest = "WHERE status = :status AND (:kind = '' OR kind = :kind) ORDER BY number"
        return self.select(rest, {"status": status, "kind": kind})

    def decide(self, proposal_id: str, accepted: bool, moment: str) -> Proposal:
        """Close an open proposal; the caller carries it out in the same transaction."""
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
        """Reopen a decided proposal; the caller reverts what its decision changed."""
        with self.db.transaction():
            # The moment stays: of two machines' versions the later one counts.
            self.db.execute(
                "UPDATE proposals SET status = 'open', decided_at = :moment WHERE id = :id",
                {"id": proposal_id, "moment": moment},
            )
            return self.get(proposal_id)

    def take_back(self, proposal_id: str) -> int:
        """Delete an open proposal by its id; return 1 if there was one."""
        with self.db.transaction():
            return self.db.update(
                "DELETE FROM proposals WHERE id = :id AND status = 'open'", {"id": proposal_id}
            )

    def reword(self, proposal_id: str, payload: Mapping[str, Any]) -> None:
        """Reword an open proposal; its key stays that of its source."""
        with self.db.transaction():
            self.db.execute(
                "UPDATE proposals SET payload = :payload WHERE id = :id AND status = 'open'",
                {"id": proposal_id, "payload": json.dumps(payload, ensure_ascii=False)},
            )

    def withdraw(self, kind: str, key: str) -> None:
        """Delete an open proposal whose subject no longer exists. Inside a transaction."""
        self.db.execute(
            "DELETE FROM proposals WHERE fingerprint = :key AND status = 'open'", {"key": _key(kind, key)}
        )


def _payload(kept: str) -> Any:
    """What a row has as its payload; nothing where it is damaged."""
    try:
        return json.loads(kept)
    except ValueError:
        return {}


def _key(kind: str, key: str) -> str:
    return fingerprint(f"{kind}\n{key}")
