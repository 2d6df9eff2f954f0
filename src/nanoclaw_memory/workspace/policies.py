"""Gating policies: parse and add `GP-NNN` blocks, and find those that a planned action triggers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.errors import FileProblem, InvalidValue
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import STOP_WORDS, one_line, stem, words
from nanoclaw_memory.types import Policy, PolicyHit
from nanoclaw_memory.workspace.files import locked, newline_of, read_or_empty, read_text, replace_text

POLICIES = "memory/gating-policies.md"
ENFORCE = ("warn", "ask", "block")  # the mildest first
MAX_TITLE = 200
MAX_FIELD = 2_000
# The minimal share of a policy in an action: with the policy's verb, for a policy without a verb, and without its
# verb.
WITH_ITS_ACTION, NO_ACTION_SAID, WITHOUT_ITS_ACTION = 0.5, 0.6, 0.75

# Hidden, so that neither a hand edit of the policies nor a restored checkpoint resets the count.
_LAST = ".last-policy"
_HEADING = regex(
    r"^\s{0,3}#{1,6}\s*GP[-\s_]?(?P<number>\d{1,6})\b\s*[:.)–—-]*\s*(?P<title>.*?)\s*#*\s*$", re.I
)
_FIELD = regex(
    r"^\s*(?:[-*+•]\s+)?[*_]*(?P<name>trigger|gate|reason|source|enforce)s?[*_]*\s*:\s*[*_]*\s*(?P<text>.*)$",
    re.I,
)
_FENCE = regex(r"^\s{0,3}(?:```|~~~)")


def parse(text: str) -> list[Policy]:
    """Return every policy in the file's order; hand edits in spacing, bullets, bold and case are understood."""
    blocks: list[_Block] = []
    fenced = ours = False
    for number, line in enumerate(text.split("\n"), 1):
        if _FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        if heading := _HEADING.match(line):
            blocks.append(_Block(int(heading["number"]), heading["title"], number))
            ours = True
        elif re.match(r"\s{0,3}#{1,6}\s", line):
            ours = False  # another heading ends the policy
        elif ours:
            blocks[-1].take(line)
    return [block.policy() for block in blocks]


class _Block:
    """A policy that is being parsed line by line."""

    def __init__(self, number: int, title: str, line: int) -> None:
        self.number, self.title, self.line = number, title, line
        self.fields = {"trigger": "", "gate": "", "reason": "", "source": "", "enforce": ""}
        self.open = ""  # the field that a following line continues

    def take(self, line: str) -> None:
        """Read one line below the heading."""
        more = line.strip()
        if match := _FIELD.match(more):
            self.open = match["name"].lower()
            self.fields[self.open] = match["text"].strip()
        elif not more:
            self.open = ""
        elif self.open and not more.startswith("<!--"):
            self.fields[self.open] = f"{self.fields[self.open]} {more}".strip()

    def policy(self) -> Policy:
        """Return the parsed policy."""
        said = self.fields["enforce"].casefold().strip(" .*_")
        self.fields["enforce"] = said if said in ENFORCE else ""
        return Policy(policy_id(self.number), self.title, **self.fields, line=self.line)


def policy_id(number: int) -> str:
    """Return 'GP-007'."""
    return f"GP-{number:03d}"


def format_policy(policy: Policy) -> str:
    """Render a policy as its block of Markdown."""
    fields = (
        ("Trigger", policy.trigger),
        ("Gate", policy.gate),
        ("Reason", policy.reason),
        ("Source", policy.source),
        ("Enforce", policy.enforce),
    )
    lines = [f"## {policy.id}: {policy.title}", *(f"- {name}: {text}" for name, text in fields if text)]
    return "\n".join(lines) + "\n"


def read(path: Path) -> list[Policy]:
    """Return the policies of a file; none if it is missing."""
    return parse(read_or_empty(path))


def add(
    path: Path, title: str, trigger: str, gate: str, reason: str = "", source: str = "", enforce: str = ""
) -> Policy:
    """Append a policy under the next number; numbers are never reused."""
    if enforce and enforce not in ENFORCE:
        raise InvalidValue(f"enforce {enforce[:40]!r} is not known", f"use {', '.join(ENFORCE)}")
    draft = Policy(
        id="",
        title=_checked("title", title, MAX_TITLE),
        trigger=_checked("trigger", trigger, MAX_FIELD),
        gate=_checked("gate", gate, MAX_FIELD),
        reason=_checked("reason", reason, MAX_FIELD),
        source=_checked("source", source, MAX_FIELD),
        enforce=enforce,
    )
    with locked(path.parent):
        try:
            text = read_text(path)
        except FileNotFoundError:
            text = "# Gating policies\n"
        last = path.parent / _LAST
        number = max([_last_number(last), *(int(policy.id[3:]) for policy in parse(text))]) + 1
        policy = replace(draft, id=policy_id(number))
        newline = newline_of(text)
        kept = text if text.endswith("\n") or not text else text + newline
        gap = "" if not kept or kept.endswith(newline * 2) else newline
        # The number is stored first: a crash between the two writes leaves a gap, never a duplicate.
        replace_text(last, f"{number}\n")
        replace_text(path, kept + gap + format_policy(policy).replace("\n", newline))
    return replace(policy, line=(kept + gap).count("\n") + 1)


def _last_number(path: Path) -> int:
    try:
        return int(read_text(path, 100))
    except FileNotFoundError:
        return 0
    except ValueError:
        raise FileProblem(
            f"{path.name} does not hold a number", f"write the highest policy number ever used into {path}"
        ) from None


def _checked(name: str, text: str, limit: int) -> str:
    plain = one_line(text)
    if not plain and name in ("title", "trigger", "gate"):
        raise InvalidValue(f"the {name} is empty", "a policy needs a title, a --trigger and a --gate")
    if len(plain) > limit:
        raise InvalidValue(f"the {name} has {len(plain):,} characters, over {limit:,}", "say it shorter")
    return plain


# ---- policies triggered by an action ----

# Words that any policy and any plan may contain; they do not distinguish actions.
_COMMON = frozenset(
    (
        "action agent always any anything approval approve ask asked asking asks attempt attempting command "
        "confirm confirmation confirmed confirming ever every execute executing explicit explicitly first "
        "get going kind make making may might must need needs never new operation perform performing "
        "permission plan planned planning request requested requesting requests require required run "
        "running runs somebody someone something task thing try trying use user user's users using want "
        "wants whenever without"
    ).split()
)
_ASKING = frozenset(
    "ask asked asks attempt attempts going need needs plan plans request requests try want wants".split()
)
_FORBIDDING = frozenset("never always don't don’t not no avoid stop".split())
_CONDITION = regex(r"\b(?:without|unless|until)\b", re.I)  # what follows in a title is the gate
_TOKEN = regex(r"[^\W_]+(?:['’][^\W_]+)?|[,/;]", re.UNICODE)


class _Topic(msgspec.Struct, frozen=True):
    """Words of a policy that mean the same step: 'delete, drop or truncate'."""

    stems: frozenset[str]
    weight: int
    action: bool


def check(policies: Iterable[Policy], action: str) -> list[PolicyHit]:
    """Return the policies that a planned action triggers, the surest first, with the words that matched.

    A policy is a set of topics (alternatives such as "drop or truncate" are one). It is triggered when the action
    names enough of them by weight. Words of the trigger weigh double those of the title alone, and double again if
    they name the action or are in both. Asking once too often is cheap, but a gate that closes for everything is soon
    ignored.
    """
    said = {stem(word): word for word in _planned(action)}
    hits = [hit for policy in policies if (hit := _hit(policy, said))]
    return sorted(hits, key=lambda hit: (-hit.score, hit.policy.id))


def _hit(policy: Policy, said: dict[str, str]) -> PolicyHit | None:
    topics = _topics(policy)
    met = [topic for topic in topics if topic.stems & said.keys()]
    if not met:
        return None
    score = sum(topic.weight for topic in met) / sum(topic.weight for topic in topics)
    if any(topic.action for topic in met):
        needed = WITH_ITS_ACTION
    else:
        needed = WITHOUT_ITS_ACTION if any(topic.action for topic in topics) else NO_ACTION_SAID
    if score < needed:
        return None
    matched = {said[stem] for topic in met for stem in topic.stems if stem in said}
    return PolicyHit(policy, round(score, 2), tuple(sorted(matched)))


def _planned(action: str) -> Iterator[str]:
    before = ""
    for word in words(action):
        # "reload without restarting": the one word that names what will not be done.
        if not (before == "without" and word.endswith("ing")) and not _is_common(word):
            yield word
        before = word


def _topics(policy: Policy) -> list[_Topic]:
    title = _CONDITION.split(policy.title)[0]
    of_trigger, of_title = _alternatives(policy.trigger), _alternatives(title)
    both = frozenset().union(*of_trigger) & frozenset().union(*of_title)
    if of_trigger and not both:
        of_title, title = [], ""  # a title in other words than its trigger would only dilute it
    groups = [*of_trigger, *of_title]
    doing = {stem(word) for word in (*_actions(policy.trigger), *_actions(title))}
    merged: list[frozenset[str]] = []
    for group in groups:  # a word named twice is one topic
        touching = [other for other in merged if other & group]
        merged = [other for other in merged if not other & group]
        merged.append(group.union(*touching))
    triggering = frozenset[str]().union(*(of_trigger or of_title))
    return [_topic(stems, triggering, both, doing) for stems in merged]


def _topic(
    stems: frozenset[str], triggering: frozenset[str], both: frozenset[str], doing: set[str]
) -> _Topic:
    weight = 2 if stems & triggering else 1  # a word of the title alone is only a hint
    return _Topic(stems, weight * 2 if stems & (both | doing) else weight, bool(stems & doing))


def _alternatives(text: str) -> list[frozenset[str]]:
    """Return the stems of the content words; words joined by a comma, slash, 'or' or 'and' alone are alternatives."""
    groups: list[set[str]] = []
    joined = False
    for token in _TOKEN.findall(text.casefold()):
        if token in (",", "/", ";", "or", "and"):
            joined = True
        elif _is_common(token):
            joined = False
        elif joined and groups:
            groups[-1].add(stem(token))
            joined = False
        else:
            groups.append({stem(token)})
    return [frozenset(group) for group in groups]


def _actions(text: str) -> Iterator[str]:
    """Yield the words that name the action: after 'never', after 'request to', and forms in -ing."""
    expecting = False
    before = last = ""
    for word in words(text):
        if word in _FORBIDDING or (word == "to" and before in _ASKING):
            expecting = True
        elif not _is_common(word):
            gerund = len(word) > 5 and word.endswith("ing") and last != "without"
            if expecting or gerund:
                yield word
            expecting = False
        if word not in STOP_WORDS:
            before = word
        last = word


def _is_common(word: str) -> bool:
    return word in STOP_WORDS or word in _COMMON or word.isdigit()
