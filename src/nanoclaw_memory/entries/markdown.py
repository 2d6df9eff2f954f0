"""Split Markdown pages into statements, and type them by headings and wording; report what has no type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.entries.rules import MAX_CONTENT, MAX_TAG, MAX_TAGS
from nanoclaw_memory.text import one_line, slug, words
from nanoclaw_memory.types import Transcript

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

FEW_WORDS = 4  # below which the judge guesses
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
    r"memory/active-context(?:-.*)?\.md": "working memory is refreshed, not kept",
}
_BULLET = re.compile(r"^(\s*)(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_RULE = re.compile(r"\s{0,3}([-*_])\s*(?:\1\s*){2,}$")
_FRONT_MATTER = re.compile(r"---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_DAILY = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md\Z")


class MarkdownPart(msgspec.Struct, frozen=True):
    """A heading, a statement (a bullet or paragraph on one line), or what is neither: code, a table."""

    line: int
    kind: str
    text: str


class ImportedEntry(msgspec.Struct, frozen=True):
    """An entry to import, with the file and line it comes from."""

    type: str
    content: str
    source: str
    tags: tuple[str, ...] = ()
    priority: str = "medium"
    origin: str = ""  # of a log line that somebody else than the owner wrote


class ImportedRelation(msgspec.Struct, frozen=True):
    """A relation to import, with the file and line it comes from."""

    subject: str
    predicate: str
    object: str
    source: str


class Imports(msgspec.Struct):
    """Everything that files contain, and what of them cannot be imported."""

    entries: list[ImportedEntry] = msgspec.field(default_factory=list)
    relations: list[ImportedRelation] = msgspec.field(default_factory=list)
    conversations: list[Transcript] = msgspec.field(default_factory=list)
    unplaced: list[str] = msgspec.field(default_factory=list)
    judged: list[str] = msgspec.field(default_factory=list)

    def add(
        self,
        kind: str,
        text: str,
        source: str,
        tags: Iterable[str] = (),
        priority: str = "medium",
        origin: str = "",
    ) -> None:
        """Add an entry; an empty or too long text is reported instead."""
        content = one_line(text)
        if not content or len(content) > MAX_CONTENT:
            self.skip(source, f"over {MAX_CONTENT:,} characters" if content else "empty")
            return
        named = dict.fromkeys(one_line(tag)[:MAX_TAG].strip() for tag in tags)
        kept = tuple(tag for tag in named if tag)[:MAX_TAGS]
        self.entries.append(ImportedEntry(kind, content, one_line(source)[:300], kept, priority, origin))

    def skip(self, source: str, why: str) -> None:
        """Report what cannot be imported."""
        self.unplaced.append(f"{source}: {why}")


# ---- memory files ----


def read_page(
    found: Imports,
    relative: str,
    text: str,
    ignored: Callable[[str], bool] = lambda text: False,
    judge: Judge | None = None,
) -> None:
    """Add the entries of a memory file; every line is added, reported, or `ignored`.

    The judge tells the type of a line of which neither heading nor wording do.
    """
    for pattern, why in _SKIPPED_FILES.items():
        if re.fullmatch(pattern, relative):
            found.skip(f"{relative}:1", why)
            return
    if _DAILY.match(relative):
        _read_log(found, relative, text)
        return
    project = re.fullmatch(r"(?:memory|shared)/project-(.+)\.md", relative)
    starter = _starter_lines()
    headings: list[str] = []
    for part in parts(text):
        source = f"{relative}:{part.line}"
        if part.kind == "heading":
            depth = len(part.text) - len(part.text.lstrip("#"))
            headings = [*headings[: depth - 1], part.text.strip("# ")]
        elif part.text in starter or ignored(part.text):
            continue
        elif problem := _problem(part):
            found.skip(source, problem)
        elif kind := "project" if project else type_of(part.text, headings):
            tags = [project[1]] if project else []
            tags += [slug(headings[-1], 40)] if len(headings) > 1 else []
            found.add(kind, part.text, source, tags)
        elif kind := _judged_type(found, part.text, headings, source, judge):
            found.add(kind, part.text, source)
        else:
            found.skip(source, "neither its heading nor its wording tells a type")


def _judged_type(
    found: Imports, content: str, headings: list[str], source: str, judge: Judge | None
) -> str | None:
    """The type that the judge tells, which is reported; None for what is no memory."""
    if judge is None or len(words(content)) < FEW_WORDS:
        return None
    kind, share = judge.line_type(content, headings[-1] if headings else "")
    if kind == "none":
        return None
    found.judged.append(f"{source}: {kind} (judge: type {share:.2f})")
    return kind


def _read_log(found: Imports, relative: str, text: str) -> None:
    from nanoclaw_memory.workspace.log import parse

    for entry in parse(text):
        source = f"{relative}:{entry.line}"
        kind = _LOG_TAGS.get(entry.tag)
        if kind is None:
            found.skip(source, f"a log line tagged {entry.tag or 'nothing'} stays in its log")
        elif problem := _problem(MarkdownPart(entry.line, "statement", entry.text)):
            found.skip(source, problem)
        else:
            strong = entry.importance is not None and entry.importance >= 0.8
            found.add(kind, entry.text, source, ("log",), "high" if strong else "medium", entry.origin)


def _starter_lines() -> set[str]:
    """The statements that `init` wrote, which are no memory."""
    from nanoclaw_memory.workspace.projects import STARTER
    from nanoclaw_memory.workspace.starter import STARTERS

    return {text for page in (*STARTERS.values(), STARTER) for _, text in statements(page)}


def _problem(part: MarkdownPart) -> str:
    """Why a part cannot become an entry; empty when it can."""
    if part.kind != "statement":
        return f"{part.kind} stays in its file"
    if len(part.text) > MAX_CONTENT:
        return f"it has {len(part.text):,} characters, over the limit of {MAX_CONTENT:,}"
    if len(words(part.text)) < 2 or re.fullmatch(r"\W*[\w ]+:\s*", part.text):
        return "it says too little on its own"
    return ""


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


# ---- the parts of a page ----


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Bullets with what is wrapped below them, and paragraphs: each on one line, with its line number."""
    return ((part.line, part.text) for part in parts(text) if part.kind == "statement")


def parts(text: str) -> Iterator[MarkdownPart]:
    """Everything in a page, in order; a bullet below one that ends with a colon repeats that one."""
    reader = _EntryReader()
    plain = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = _FRONT_MATTER.match(plain)
    skipped = plain[: front.end()].count("\n") if front else 0
    for number, line in enumerate([*plain.split("\n")[skipped:], ""], skipped + 1):
        yield from reader.read(number, line.rstrip())
    yield from reader.rest()


class _EntryReader(msgspec.Struct):
    """Reads a page line by line."""

    start: int = 0
    words: list[str] = msgspec.field(default_factory=list)
    lead: str = ""  # of the bullets above that end with a colon
    above: list[tuple[int, str]] = msgspec.field(default_factory=list)
    inside: str = ""  # the end of what is being skipped: a code block or a comment
    table: bool = False

    def read(self, number: int, line: str) -> Iterator[MarkdownPart]:
        if self.inside:
            if self.inside in line:
                self.inside = ""
            return
        fence, heading, bullet = _FENCE.match(line), _HEADING.match(line), _BULLET.match(line)
        comment, table = line.lstrip().startswith("<!--"), line.lstrip().startswith("|")
        if not line.strip() or fence or heading or bullet or comment or table or _RULE.match(line):
            yield from self.rest()
        if table and not self.table:
            yield MarkdownPart(number, "a table", one_line(line))
        self.table = table
        if fence:
            self.inside = fence[1]
            yield MarkdownPart(number, "a code block", one_line(line))
        elif comment:
            self.inside = "" if "-->" in line else "-->"
        elif heading:
            self.above = []
            yield MarkdownPart(number, "heading", line.strip())
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
        self.above = [(depth, lead) for depth, lead in self.above if depth < indent]
        self.lead = " ".join(lead for _, lead in self.above)
        self.start, self.words = number, [text]
        if text.endswith(":") and len(text) <= 100:
            self.above.append((indent, text))

    def rest(self) -> Iterator[MarkdownPart]:
        """The statement that was begun, if any."""
        whole = one_line(" ".join(self.words))
        if whole:
            yield MarkdownPart(self.start, "statement", f"{self.lead} {whole}".strip())
        self.words = []
