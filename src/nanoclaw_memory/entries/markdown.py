"""Split Markdown pages into statements and assign types by headings and wording; report untyped ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.entries.rules import MAX_CONTENT, MAX_TAG, MAX_TAGS
from nanoclaw_memory.text import one_line, slug, words
from nanoclaw_memory.types import Transcript

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

FEW_WORDS = 4  # the judge does not classify shorter statements
# Whole words, English and German: the nearest heading with words of a type decides.
_BY_HEADING = (
    ("correction", r"correct\w*|mistakes?|wrong|don'?t do|korrektur\w*|falsch|fehler"),
    (
        "preference",
        r"preferences?|style|tone|tastes?|(?:dis)?likes?|communication|how i (?:like|want|work)"
        r"|vorlieben|stil|(?:so )?mag ich\w*",
    ),
    (
        "instruction",
        r"instructions?|rules?|directives?|conventions?|standing|guidelines?|workflows?"
        r"|regeln?|anweisung\w*|vorgaben|konventionen|richtlinien",
    ),
    ("decision", r"decisions?|decided|chosen|choices|entscheidung\w*|entschieden|beschl(?:üsse|ossen)"),
    (
        "insight",
        r"lessons?|insights?|learn\w*|gotchas?|pitfalls?|risks?|til|lektion\w*|gelernt\w*|erkenntnis\w*|gemerkt|risiken",
    ),
    (
        "person",
        r"people|persons?|famil(?:y|ie)|contacts?|team|friends?|colleagues?"
        r"|(?:about|über) (?:me|us|the user|mich|uns)|leute|personen|menschen|kontakte?|freunde?|kolleg\w*",
    ),
    ("project", r"projects?|architecture|stack|roadmap|goals?|ongoing|projekte?|vorhaben|ziele"),
    (
        "fact",
        r"facts?|environment|infra(?:structure)?|servers?|accounts?|channels?|address(?:es)?|setup|knowledge"
        r"|fakten|umgebung|technik|konten|adressen|geräte",
    ),
    (
        "context",
        r"context|focus|status|(?:right )?now|this (?:week|month|spring|summer|autumn|fall|winter)|current\w*"
        r"|open questions|kontext|gerade|aktuell\w*|derzeit|lage|offene fragen",
    ),
)
_COMMAND = (
    (
        "instruction",
        r"^(?:please |bitte )?(?:always|never|do not|don't|must|make sure|ask before|avoid|immer|nie|niemals)\b"
        r"|\b(?:you must|please|bitte|du (?:musst|sollst|darfst))\b",
    ),
    ("correction", r"^(?:stop|no longer|not .* but)\b|\b(?:corrected|korrektur|korrigiert)\b"),
    (
        "preference",
        r"^(?:i|ich) (?:hate|like|love|prefer|mag|hasse|liebe)\b|\b(?:i'd rather|ich will lieber)\b",
    ),
)
_BY_WORDING = (
    (
        "decision",
        r"\b(?:decision|decided|chose|chosen|agreed|switched to|moved to|settled on|we use|going with|replaced"
        r"|entschieden|entscheidung|beschlossen|geeinigt|wir nehmen)\b",
    ),
    (
        "insight",
        r"\b(?:lesson|learn(?:ed|t)|turns out|because|beware|careful|root cause|gelernt|erkenntnis)\b",
    ),
    (
        "preference",
        r"\b(?:prefers?|likes?|loves?|hates?|dislikes?|rather|favou?rite|wants?|mag|hasst?|lieber|liebt|lieblings\w*)\b",
    ),
    (
        "person",
        r"\b(?:birthday|born|married|partner|wife|husband|mother|father|sister|brother|daughter|son|phone|e-?mail"
        r"|geburtstag|geboren|verheiratet|mutter|vater|schwester|bruder|tochter|sohn|telefon)\b",
    ),
)
# Words of ordinary sentences: checked last, and only without the judge.
_PLAIN = re.compile(
    r"\b(?:is|are|was|has|have|runs?|lives?|uses?|costs?|means?|ist|sind|hat|läuft|kostet|heißt)\b|=|:"
)
_DATE_FIRST = re.compile(r"\d{4}-\d\d(?:-\d\d)?[:,]?\s+")
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
_UNDERLINE = re.compile(r"={2,}|-{2,}")  # the underline of a heading
_LABEL = re.compile(r"(?:\*\*)?[A-ZÄÖÜ][^\s:]*(?: [^\s:]+){0,2}:(?:\*\*)? \S")
_FRONT_MATTER = re.compile(r"---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_DAILY = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md\Z")


class MarkdownPart(msgspec.Struct, frozen=True):
    """A heading, a statement (a bullet or paragraph on one line), or other content: code, a table."""

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
    origin: str = ""  # set for a log line that the owner did not write


class ImportedRelation(msgspec.Struct, frozen=True):
    """A relation to import, with the file and line it comes from."""

    subject: str
    predicate: str
    object: str
    source: str


class Imports(msgspec.Struct):
    """Everything in the files, and what cannot be imported."""

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

    The judge chooses the type of a line if neither heading nor wording does.
    """
    for pattern, why in _SKIPPED_FILES.items():
        if re.fullmatch(pattern, relative):
            found.skip(f"{relative}:1", why)
            return
    if _DAILY.match(relative):
        _read_log(found, relative, text)
        return
    project = re.fullmatch(r"(?:memory|shared)/project-(.+)\.md", relative)
    starter = starter_lines()
    above: list[tuple[int, str]] = []
    for part in parts(text):
        source = f"{relative}:{part.line}"
        headings = [heading for _, heading in above]
        if part.kind == "heading":
            depth = len(part.text) - len(part.text.lstrip("#"))
            above = [*(one for one in above if one[0] < depth), (depth, part.text.strip("# "))]
        elif part.text in starter or ignored(part.text):
            continue
        elif problem := _problem(part):
            found.skip(source, problem)
        elif kind := "project" if project else type_of(part.text, headings):
            tags = [project[1]] if project else []
            tags += [slug(headings[-1], 40)] if above and above[-1][0] > 1 else []
            found.add(kind, part.text, source, tags)
        elif judge and (kind := _judged_type(found, part.text, headings, source, judge)):
            found.add(kind, part.text, source)
        elif not judge and _PLAIN.search(part.text.casefold()):
            found.add("fact", part.text, source)
        else:
            found.skip(source, "neither its heading nor its wording tells a type")


def _judged_type(found: Imports, content: str, headings: list[str], source: str, judge: Judge) -> str | None:
    """Return the judge's type, which is reported; None for what is no memory."""
    if len(words(content)) < FEW_WORDS:
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


def starter_lines() -> set[str]:
    """Return the statements that `init` wrote, which are no memory."""
    from nanoclaw_memory.workspace.projects import STARTER
    from nanoclaw_memory.workspace.starter import STARTERS

    return {text for page in (*STARTERS.values(), STARTER) for _, text in statements(page)}


def _problem(part: MarkdownPart) -> str:
    """Return why a part cannot become an entry; empty if it can."""
    if part.kind != "statement":
        return f"{part.kind} stays in its file"
    if len(part.text) > MAX_CONTENT:
        return f"it has {len(part.text):,} characters, over the limit of {MAX_CONTENT:,}"
    if len(words(part.text)) < 2 or re.fullmatch(r"\W*[\w ]+:\s*", part.text):
        return "it says too little on its own"
    return ""


def type_of(content: str, headings: list[str]) -> str | None:
    """Return the type that wording or headings suggest; plain words of command override any heading."""
    lowered = _DATE_FIRST.sub("", content.casefold(), count=1)
    by_heading = (
        _first(_BY_HEADING, heading.casefold(), r"(?<!\w)(?:%s)(?!\w)") for heading in reversed(headings)
    )
    return _first(_COMMAND, lowered) or next(filter(None, by_heading), None) or _first(_BY_WORDING, lowered)


def _first(table: Sequence[tuple[str, str]], text: str, form: str = "%s") -> str | None:
    return next((kind for kind, pattern in table if re.search(form % pattern, text)), None)


# ---- the parts of a page ----


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield bullets with their wrapped lines, and paragraphs: each on one line, with its line number."""
    return ((part.line, part.text) for part in parts(text) if part.kind == "statement")


def parts(text: str) -> Iterator[MarkdownPart]:
    """Yield everything in a page, in order; a bullet below one that ends with a colon starts with that one's text."""
    reader = _EntryReader()
    plain = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = _FRONT_MATTER.match(plain)
    skipped = plain[: front.end()].count("\n") if front else 0
    for number, line in enumerate([*plain.split("\n")[skipped:], ""], skipped + 1):
        yield from reader.read(number, line.rstrip())
    yield from reader.rest()


class _EntryReader(msgspec.Struct):
    """Read a page line by line."""

    start: int = 0
    words: list[str] = msgspec.field(default_factory=list)
    lead: str = ""  # of the bullets above that end with a colon
    above: list[tuple[int, str]] = msgspec.field(default_factory=list)
    inside: str = ""  # the end of what is being skipped: a code block or a comment
    table: bool = False
    bullet: bool = False  # the open statement is an item, not a paragraph

    def read(self, number: int, line: str) -> Iterator[MarkdownPart]:
        if self.inside:
            if self.inside in line:
                self.inside = ""
            return
        if self.words and not self.bullet and len(self.words) == 1 and _UNDERLINE.fullmatch(line):
            yield MarkdownPart(self.start, "heading", f"{'#' if line[0] == '=' else '##'} {self.words.pop()}")
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
            text = line.lstrip("> ").strip()
            if self.words and not self.bullet and _separate(self.words[-1], text):
                yield from self.rest()
            if not self.words:
                self.start, self.lead, self.bullet = number, "", False
                self.above = self.above if line[:1].isspace() else []
            self.words.append(text)

    def _begin(self, number: int, indent: int, text: str) -> None:
        self.above = [(depth, lead) for depth, lead in self.above if depth < indent]
        self.lead = " ".join(lead for _, lead in self.above)
        self.start, self.words, self.bullet = number, [text], True
        if text.endswith(":") and len(text) <= 100:
            self.above.append((indent, text))

    def rest(self) -> Iterator[MarkdownPart]:
        """Yield the open statement, if any."""
        whole = one_line(" ".join(self.words))
        if whole:
            yield MarkdownPart(self.start, "statement", f"{self.lead} {whole}".strip())
        self.words = []


def _separate(before: str, after: str) -> bool:
    """Return whether a line of a paragraph is a separate statement: after a whole sentence, or another `Name: …`."""
    whole = before.endswith((".", "!", "?")) and not after[:1].islower()
    return whole or bool(_LABEL.match(before) and _LABEL.match(after))
