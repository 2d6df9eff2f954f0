"""An agent without a model: keeps what it is told to keep, finds it again, schedules, and has a transcript.

It is started by host.py like any agent: in its group's directory, with its group's HOME and IPC directory.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from pathlib import Path

from nanoclaw_memory import Memory
from nanoclaw_memory.types import Scope


def main() -> None:
    prompt = sys.argv[1]
    question = re.sub(r"^.*?@\w+", "", prompt.strip().rsplit("\n", 1)[-1]).strip()
    session = os.environ["NANOCLAW_SESSION"] or uuid.uuid4().hex[:12]
    answer = answered(question, prompt, session)
    keep_transcript(session, question, answer)
    print(json.dumps({"result": answer, "session_id": session}))


def answered(question: str, prompt: str, session: str) -> str:
    if told := re.match(r"remember(?: that)? (.+)", question, re.IGNORECASE):
        with Memory.open(scope=Scope(os.environ["NANOCLAW_GROUP"], session)) as memory:
            memory.write(told[1], "fact", 0.8)
        return "I will remember that."
    if every := re.match(r"every (\S+?)s (.+)", question):
        milliseconds = str(int(every[1]) * 1000)
        task = {"type": "schedule_task", "prompt": every[2], "schedule_type": "interval"}
        ask_host("tasks", {**task, "schedule_value": milliseconds})
        return "I will."
    if question.startswith("tell "):
        chat, _, text = question.removeprefix("tell ").partition(" ")
        ask_host("messages", {"type": "message", "chatJid": chat, "text": text})
        return "I passed it on."
    with Memory.open(scope=Scope(os.environ["NANOCLAW_GROUP"], session)) as memory:
        hits = memory.search(question, limit=2, fast=True).hits
    found = "; ".join(" ".join(hit.text.split()) for hit in hits)
    instructions = "CLAUDE.md" if "## CLAUDE.md" in prompt else ""
    return f"I remember: {found}" if found else f"I know nothing about that. {instructions}".strip()


def ask_host(folder: str, request: dict[str, str]) -> None:
    path = Path(os.environ["NANOCLAW_IPC"], folder, f"{uuid.uuid4().hex}.json")
    path.with_suffix(".tmp").write_text(json.dumps(request))
    path.with_suffix(".tmp").rename(path)


def keep_transcript(session: str, question: str, answer: str) -> None:
    """As Claude Code keeps it: the host archives it before it is compacted."""
    path = Path(os.environ["HOME"], ".claude", "projects", "plain", f"{session}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for role, text in (("user", question), ("assistant", answer)):
            message = {"role": role, "content": [{"type": "text", "text": text}]}
            file.write(json.dumps({"type": role, "sessionId": session, "message": message}) + "\n")


if __name__ == "__main__":
    main()
