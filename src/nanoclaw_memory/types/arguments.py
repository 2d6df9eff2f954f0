"""Types of the API's arguments with limits and choices, which HTTP checks and OpenAPI documents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta


def _one_of(*words: str) -> Meta:
    # Not a Literal: the command line passes any word, and the method that refuses it names the choices.
    return Meta(pattern=f"^({'|'.join(words)})$", extra_json_schema={"enum": list(words)})


Query = Annotated[str, Meta(max_length=10_000)]
Message = Annotated[str, Meta(max_length=4_000_000)]
Content = Annotated[str, Meta(max_length=100_000)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
TokenBudget = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=0)]
Moment = Annotated[datetime, Meta(extra_json_schema={"format": "date-time"})]

AuditScope = Annotated[str, _one_of("all", "memory_md", "domains", "system_prompt")]
ContextMode = Annotated[str, _one_of("isolated", "group")]
DrawingForm = Annotated[str, _one_of("tree", "mermaid", "dot", "json")]
Priority = Annotated[str, _one_of("critical", "high", "medium", "low")]
RecallFormat = Annotated[str, _one_of("brief", "detailed")]
ScheduleKind = Annotated[str, _one_of("cron", "interval", "once")]
SpoolKind = Annotated[str, _one_of("prompt", "answer")]
PassageKind = Annotated[str, _one_of("files", "exchanges", "entries", "facts", "relations", "lessons")]
Tier = Annotated[str, _one_of("", "hot", "warm", "cool")]
