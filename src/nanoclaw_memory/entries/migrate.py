"""Markdown to typed entries: headings and wording decide the type; what cannot be placed is said, nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nanoclaw_memory.entries.rules import MAX_CONTENT
from nanoclaw_memory.text import one_line, slug, words

# The first pattern that a heading (or any heading above it) or the wording matches decides.
_BY_HEADING = (
    ("correction", r"correction|mistake|don'?t do"),
    ("preference", r"preference|style|taste|likes|communication"),
    ("instruction", r"instruction|rule|directive|convention|standing|guideline|workflow"),
    ("decision", r"decision|chosen|choices"),
    ("insight", r"lesson|insight|learn|gotcha|pitfall|risk"),
    ("person", r"people|person|famil|contact|about|team|friend|colleague|user"),
    ("project", r"project|architecture|stack|repo|roadmap|goal"),
    ("fact", r"fact|environment|infrastructure|server|account|channel|address|setup|knowledge|tools?\b"),
    ("context", r"context|focus|status|question|current|active|todo|next"),
)
_BY_WORDING = (
    ("instruction", r"^(?:always|never|do not|don't|must|make sure|ask before|avoid)\b"),
    ("correction", r"^(?:stop|no longer|not .* but)\b|\bcorrected\b"),
    ("preference", r"\b(?:prefers?|likes?|loves?|hates?|dislikes?|rather|favou?rite|wants?)\b"),
    (
        "decision",
        r"\b(?:decided|chose|chosen|agreed|switched to|moved to|settled on|we use|going with|replaced)\b",
    ),
    ("insight", r"\b(?:lesson|learn(?:ed|t)|turns out|because|beware|careful|root cause)\b"),
    (
        "person",
        r"\b(?:birthday|born|married|partner|wife|husband|mother|father|daughter|son|phone|e-?mail)\b",
    ),
    ("fact", r"\b(?:is|are|was|has|have|runs?|lives?|uses?|costs?|means?)\b|=|:"),
)
_LOG_TAGS = {
    "decision": "decision",
    "lesson": "insight",
    "insight": "insight",
    "preference": "preference",
    "instruction": "instruction",
    "correction": "correction",
    "fact": "fact",
    "person": "person",
    "project": "project",
}
_SKIPPED_FILES = {
    r"memory/tools-.*": "a runbook stays a file",
    r"memory/gating-policies\.md": "policies have their own command",
    r"memory/active-context\.md": "working memory is refreshed, not kept",
}
_BULLET = re.compile(r"^(\s*)(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_DAILY = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md\Z")


@dataclass(frozen=True)
class Candidate:
    """A line that becomes an entry."""

    type: str
    content: str
    line: int
    tags: tuple[str, ...] = ()
    priority: str = "medium"


@dataclass(frozen=True)
class Unplaced:
    """A line that does not, and why."""

    line: int
    text: str
    why: str


def read(relative: str, text: str) -> tuple[list[Candidate], list[Unplaced]]:
    """The entries that a memory file holds, and what could not be placed."""
    for pattern, why in _SKIPPED_FILES.items():
        if re.fullmatch(pattern, relative):
            return [], [Unplaced(1, relative, why)]
    if _DAILY.match(relative):
        return _split(_of_log(text))
    project = re.fullmatch(r"(?:memory|shared)/project-(.+)\.md", relative)
    return _split(_of_page(text, project.group(1) if project else ""))


def _split(found: Iterator[Candidate | Unplaced]) -> tuple[list[Candidate], list[Unplaced]]:
    placed, left = [], []
    for one in found:
        if isinstance(one, Candidate):
            placed.append(one)
        else:
            left.append(one)
    return placed, left


def _of_log(text: str) -> Iterator[Candidate | Unplaced]:
    from nanoclaw_memory.workspace.log import parse

    for entry in parse(text):
        kind = _LOG_TAGS.get(entry.tag)
        if kind is None:
            yield Unplaced(
                entry.line, entry.text, f"a log line tagged {entry.tag or 'nothing'} stays in its log"
            )
        elif problem := _problem(entry.text):
            yield Unplaced(entry.line, entry.text, problem)
        else:
            strong = entry.importance is not None and entry.importance >= 0.8
            yield Candidate(kind, entry.text, entry.line, ("log",), "high" if strong else "medium")


def _of_page(text: str, project: str) -> Iterator[Candidate | Unplaced]:
    headings: list[str] = []
    for number, content in statements(text):
        heading = _HEADING.match(content)
        if heading:
            depth = len(heading.group(1))
            headings = [*headings[: depth - 1], heading.group(2)]
            continue
        if problem := _problem(content):
            yield Unplaced(number, content, problem)
            continue
        kind = "project" if project else type_of(content, headings)
        if kind is None:
            yield Unplaced(number, content, "neither its heading nor its wording tells a type")
            continue
        section = [slug(headings[-1], 40)] if len(headings) > 1 else []
        yield Candidate(
            kind, content, number, tuple(dict.fromkeys([*([project] if project else []), *section]))
        )


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Headings, bullets with their continuation lines, and paragraphs, each on one line with its number."""
    number, parts, bulleted, fenced = 0, [""], False, False
    start = 0

    def whole() -> str:
        return one_line(" ".join(parts))

    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = raw.rstrip()
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced or line.lstrip().startswith(("<!--", "|", "---", "***")):
            continue
        bullet = _BULLET.match(line)
        breaks = not line.strip() or bullet or _HEADING.match(line)
        if breaks and whole():
            yield start, whole()
            parts = []
        if _HEADING.match(line):
            yield number, line.strip()
            parts = []
        elif bullet:
            parts, start, bulleted = [bullet.group(2)], number, True
        elif line.strip():
            start = start if whole() else number
            parts.append(line.lstrip("> ").strip())
        else:
            parts, bulleted = [], False


def type_of(content: str, headings: list[str]) -> str | None:
    """The type that wording or headings suggest; plain words of command win over any heading."""
    lowered = content.casefold()
    for kind, pattern in _BY_WORDING[:3]:
        if re.search(pattern, lowered):
            return kind
    for heading in reversed(headings):
        for kind, pattern in _BY_HEADING:
            if re.search(pattern, heading.casefold()):
                return kind
    return next((kind for kind, pattern in _BY_WORDING[3:] if re.search(pattern, lowered)), None)


def _problem(content: str) -> str:
    if len(content) > MAX_CONTENT:
        return f"it has {len(content):,} characters, over the limit of {MAX_CONTENT:,}"
    if len(words(content)) < 2 or re.fullmatch(r"\W*[\w ]+:\s*", content):
        return "it says too little on its own"
    return ""
