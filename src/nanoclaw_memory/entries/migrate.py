"""Markdown to typed entries: headings and wording decide the type; what cannot be placed is said."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

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
_FENCE = re.compile(r"\s*(```+|~~~+)")
_RULE = re.compile(r"\s{0,3}([-*_])\s*(?:\1\s*){2,}$")
_FRONT_MATTER = re.compile(r"---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_DAILY = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md\Z")


class Part(msgspec.Struct, frozen=True):
    """A heading, a statement (a bullet or paragraph on one line), or what is neither: code, a table."""

    line: int
    kind: str
    text: str


class Candidate(msgspec.Struct, frozen=True):
    """A line that becomes an entry."""

    type: str
    content: str
    line: int
    tags: tuple[str, ...] = ()
    priority: str = "medium"


class Unplaced(msgspec.Struct, frozen=True):
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
    ours = _starter_lines()
    for part in parts(text):
        if part.kind == "heading":
            depth = len(part.text) - len(part.text.lstrip("#"))
            headings = [*headings[: depth - 1], part.text.strip("# ")]
        elif part.kind != "statement":
            yield Unplaced(part.line, part.text, f"{part.kind} stays in its file")
        elif part.text in ours:
            continue
        elif problem := _problem(part.text):
            yield Unplaced(part.line, part.text, problem)
        elif kind := "project" if project else type_of(part.text, headings):
            section = [slug(headings[-1], 40)] if len(headings) > 1 else []
            tags = tuple(dict.fromkeys([*([project[:50]] if project else []), *section]))
            yield Candidate(kind, part.text, part.line, tags)
        else:
            yield Unplaced(part.line, part.text, "neither its heading nor its wording tells a type")


def _starter_lines() -> set[str]:
    """What `init` wrote is no memory."""
    from nanoclaw_memory.workspace.projects import STARTER
    from nanoclaw_memory.workspace.starter import STARTERS

    texts = (*STARTERS.values(), STARTER)
    return {part.text for text in texts for part in parts(text) if part.kind == "statement"}


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Bullets with what is wrapped below them, and paragraphs: each on one line, with its line number."""
    return ((part.line, part.text) for part in parts(text) if part.kind == "statement")


def parts(text: str) -> Iterator[Part]:
    """Everything in a page, in order; a bullet below one that ends with a colon is told with it."""
    reader = _Reader()
    plain = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = _FRONT_MATTER.match(plain)
    skipped = plain[: front.end()].count("\n") if front else 0
    for number, line in enumerate([*plain.split("\n")[skipped:], ""], skipped + 1):
        yield from reader.read(number, line.rstrip())
    yield from reader.rest()


class _Reader(msgspec.Struct):
    """Reads a page line by line."""

    start: int = 0
    words: list[str] = msgspec.field(default_factory=list)
    lead: str = ""  # of the bullets above that end with a colon
    above: list[tuple[int, str]] = msgspec.field(default_factory=list)
    inside: str = ""  # the end of what is being skipped: a code block or a comment
    table: bool = False

    def read(self, number: int, line: str) -> Iterator[Part]:
        if self.inside:
            if self.inside in line:
                self.inside = ""
            return
        fence, heading, bullet = _FENCE.match(line), _HEADING.match(line), _BULLET.match(line)
        comment, table = line.lstrip().startswith("<!--"), line.lstrip().startswith("|")
        if not line.strip() or fence or heading or bullet or comment or table or _RULE.match(line):
            yield from self.rest()
        if table and not self.table:
            yield Part(number, "a table", one_line(line))
        self.table = table
        if fence:
            self.inside = fence[1]
            yield Part(number, "a code block", one_line(line))
        elif comment:
            self.inside = "" if "-->" in line else "-->"
        elif heading:
            self.above = []
            yield Part(number, "heading", line.strip())
        elif table or _RULE.match(line) or not line.strip():
            return
        elif bullet:
            self._begin(number, len(bullet[1].expandtabs(4)), bullet[2])
        else:
            if not self.words:
                self.start, self.lead = number, ""
                self.above = self.above if line[:1].isspace() else []
            self.words.append(line.lstrip("> ").strip())

    def _begin(self, number: int, indent: int, text: str) -> None:
        self.above = [(depth, said) for depth, said in self.above if depth < indent]
        self.lead = " ".join(said for _, said in self.above)
        self.start, self.words = number, [text]
        if text.endswith(":") and len(text) <= 100:
            self.above.append((indent, text))

    def rest(self) -> Iterator[Part]:
        """What was begun, whole."""
        whole = one_line(" ".join(self.words))
        if whole:
            yield Part(self.start, "statement", f"{self.lead} {whole}".strip())
        self.words = []


def type_of(content: str, headings: list[str]) -> str | None:
    """The type that wording or headings suggest; plain words of command win over any heading."""
    lowered = content.casefold()
    for kind, pattern in _BY_WORDING[:2]:
        if re.search(pattern, lowered):
            return kind
    for heading in reversed(headings):
        for kind, pattern in _BY_HEADING:
            if re.search(pattern, heading.casefold()):
                return kind
    return next((kind for kind, pattern in _BY_WORDING[2:] if re.search(pattern, lowered)), None)


def _problem(content: str) -> str:
    if len(content) > MAX_CONTENT:
        return f"it has {len(content):,} characters, over the limit of {MAX_CONTENT:,}"
    if len(words(content)) < 2 or re.fullmatch(r"\W*[\w ]+:\s*", content):
        return "it says too little on its own"
    return ""
