"""Templates of the page: every text is escaped and shows what hides; English, or German if the browser prefers it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from markupsafe import Markup, escape

from nanoclaw_memory.clock import LONG_AGO, moment_of
from nanoclaw_memory.rendering import visible, visible_line

if TYPE_CHECKING:
    from jinja2.runtime import Context

HERE = Path(__file__).parent
LANGUAGES = ("en", "de")


@cache
def environment(language: str) -> Environment:
    """Return the templates in one language."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    made.filters |= {"line": visible_line, "markdown": markdown, "when": when, "day": day, "setting": setting}
    made.filters |= {"exact": exact, "plain": escape, "pairs": pairs, "marked": marked}
    texts = german() if language == "de" else {}
    # For texts that may contain what somebody typed: unlike gettext's, the result is escaped.
    made.filters["translated"] = lambda text: texts.get(text, text)
    made.install_gettext_callables(  # type: ignore[attr-defined]
        lambda text: texts.get(text, text),
        lambda one, many, number: texts.get(one if number == 1 else many, one if number == 1 else many),
        newstyle=True,
    )
    return made


@cache
def german() -> Mapping[str, str]:
    """Return the German translations of the page's English texts."""
    found: dict[str, str] = json.loads((HERE / "german.json").read_text(encoding="utf-8"))
    return found


def language_of(accepted: str) -> str:
    """Return the first of our languages that a browser names; browsers name the preferred one first."""
    names = (part.strip()[:2].lower() for part in accepted.split(","))
    return next((name for name in names if name in LANGUAGES), "en")


def _shown(value: Any) -> Any:
    """Render a text: the one place where text enters a page, with everything hidden or reordering made visible."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return "" if value is None else value


def exact(text: str) -> Markup:
    """Escape a text to be edited without other changes. A browser drops the first line end of a field."""
    return Markup("\n") + escape(text)


def markdown(text: str) -> Markup:
    """Render Markdown as HTML; HTML in it stays text, and nothing is loaded from elsewhere."""
    return Markup(_markdown().render(visible(text)))  # noqa: S704 - markdown-it escapes every text


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def pairs(values: Sequence[str]) -> list[tuple[str, str]]:
    """Return choices whose labels are their values."""
    return [(value, value) for value in values]


def marked(diff: str) -> list[tuple[str, str]]:
    """Return the lines of a diff, each with its mark."""
    return [(line[:1], line) for line in diff.splitlines()]


def setting(value: Any) -> str:
    """Return a setting's value as it is written in the file or on the command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@pass_context
def when(context: Context, moment: str) -> str:
    """Return a stored moment in the user's zone, to the minute."""
    found = _local(context, moment)
    return f"{found:%Y-%m-%d %H:%M}" if found else visible_line(moment)


@pass_context
def day(context: Context, moment: str) -> str:
    """Return the day of a stored moment in the user's zone; a bare day stays as it is."""
    found = _local(context, moment) if len(moment) > 10 else None
    return f"{found:%Y-%m-%d}" if found else visible_line(moment)


def _local(context: Context, moment: str) -> datetime | None:
    found = moment_of(moment)
    zone = context["now"].tzinfo
    return found.astimezone(zone) if found != LONG_AGO else None
