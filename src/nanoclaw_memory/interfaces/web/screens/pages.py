"""Pages: the Markdown files rendered, by lines with the origin of each, edited, and with their earlier versions."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nanoclaw_memory.errors import Conflict
from nanoclaw_memory.interfaces.web.screen import Answer, Redirection, RenderedScreen, Screen, WebRequest

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

MAX_RENDERED = 200_000  # characters; a longer page is shown by its lines only


def listed(memory: Memory, request: WebRequest) -> RenderedScreen:
    """List every file that contains the words of `q` in its name."""
    words = request.text("q").casefold()
    found = [page for page in memory.workspace.files() if words in page.path.casefold()]
    return RenderedScreen("pages.html", {**request.slice(found), "query": request.text("q")})


def choose(memory: Memory, request: WebRequest) -> Redirection:
    """Redirect to the page of a typed name."""
    return Redirection(f"/pages/{quote(request.text('file'))}")


def show(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show one page: rendered, by lines, as a form, or its versions."""
    page = memory.workspace.page(request.text("file"))
    view = request.text("view") or ("lines" if len(page.text) > MAX_RENDERED else "read")
    values: dict[str, Any] = {"one": page, "view": view if page.exists else "edit"}
    if view == "lines":
        values["lines"] = memory.workspace.line_origins(page.path)
    elif view == "history":
        values["versions"] = memory.workspace.versions(page.path)
    elif view == "version":
        values["version"] = memory.workspace.version(page.path, request.text("version"))
        values["version_name"] = request.text("version")
        values["diff"] = difference(values["version"].text, page.text)
    return RenderedScreen("page.html", values)


def save(memory: Memory, request: WebRequest) -> Answer:
    """Write the page if it has not changed since it was read; otherwise show both texts."""
    path, given = request.text("file"), _with_line_ends(memory, request)
    try:
        saved = memory.workspace.save_page(path, given, request.text("fingerprint"))
    except Conflict:
        now = memory.workspace.page(path)
        values = {"one": now, "given": given, "diff": difference(now.text, given)}
        return RenderedScreen("conflict.html", values, 409)
    return Redirection(f"/pages/{quote(saved.path)}", "saved")


def restore(memory: Memory, request: WebRequest) -> Redirection:
    """Make a version the page's text again; the replaced text is stored as a version."""
    path = request.text("file")
    old = memory.workspace.version(path, request.text("version"))
    memory.workspace.save_page(path, old.text, request.text("fingerprint"))
    return Redirection(f"/pages/{quote(old.path)}", "saved")


def _with_line_ends(memory: Memory, request: WebRequest) -> str:
    """Return the text of the form with the line ends of the page: a browser sends every one as CR and LF."""
    text = request.exact("text").replace("\r\n", "\n")
    before = memory.workspace.page(request.text("file")).text
    return text.replace("\n", "\r\n") if "\r\n" in before else text


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """Return two texts as lines of a diff, each with its mark."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [(line[:1], line) for line in list(found)[2:]]


SCREENS = (
    Screen("GET", "/pages", listed),
    Screen("GET", "/open-page", choose),
    Screen("POST", "/restore/{file:path}", restore, lasting=True),
    Screen("GET", "/pages/{file:path}", show),
    Screen("POST", "/pages/{file:path}", save, lasting=True),
)
