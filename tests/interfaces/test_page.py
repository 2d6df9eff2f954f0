"""The page of a real server as a browser without scripts asks for it: who may open it, and what its screens do."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from serving import Served, serving

from nanoclaw_memory.memory import Memory

WEB = Path(__file__).parents[2] / "src" / "nanoclaw_memory" / "interfaces" / "web"
PROMOTED = "The invoices move to the new ledger on Friday"


def command(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "nanoclaw_memory", "--home", str(home), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NANOCLAW_GROUP": "main"},
    )
    return done.stdout.strip() or done.stderr.strip()


class Browser:
    """What a browser without scripts does: it keeps its cookie, follows redirects and sends forms."""

    def __init__(self, served: Served, link: str = "") -> None:
        self.served = served
        self.client = httpx2.Client(base_url=served.url, timeout=60, follow_redirects=True)
        self.opened = self.client.get(link or command(served.home, "web", "--print"))

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.client.get(path, headers=headers)

    def text(self, path: str) -> str:
        """What a person reads on a screen."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return read(answer.text)

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.get("/").text)
        assert found
        return found[1]

    def send(self, path: str, **fields: str | list[str]) -> httpx2.Response:
        data = {"csrf": self.csrf, **fields}
        return self.client.post(path, data=data, headers={"Origin": self.served.url})


def read(page: str) -> str:
    """The words of a page, without its tags."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", "", body))


def propose(home: Path, line: str) -> str:
    """A line of three days ago that upkeep proposes for MEMORY.md; the id of the proposal."""
    with Memory.open(home) as memory:
        day = memory.clock.now().date() - timedelta(days=3)
        path = home / "workspace" / "memory" / f"{day}.md"
        text = path.read_text() if path.exists() else f"# {day}\n\n"
        path.write_text(f"{text}- [decision|i=0.95] {line}\n")
        memory.upkeep.run("promote")
        (made,) = [one.id for one in memory.upkeep.review() if line in one.diff]
        return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("page") / "home", "--no-upkeep") as one:
        yield one


@pytest.fixture
def browser(served: Served) -> Browser:
    return Browser(served)


# ---- who may open it ----


def test_the_link_opens_the_page_once(served: Served):
    link = command(served.home, "web", "--print")
    first = Browser(served, link)
    assert first.opened.status_code == 200 and str(first.opened.url) == f"{served.url}/"
    assert "What waits for you" in first.opened.text
    second = Browser(served, link)
    assert second.opened.status_code == 401 and "ncm web" in second.opened.text


def test_a_link_is_worth_nothing_after_ten_minutes(served: Served):
    link = command(served.home, "web", "--print")
    for path in (served.home / "web-sessions").glob("link-*"):
        os.utime(path, (time.time() - 700, time.time() - 700))
    assert Browser(served, link).opened.status_code == 401


def test_the_cookie_is_for_this_port_this_site_and_no_script(served: Served):
    link = command(served.home, "web", "--print")
    answer = httpx2.get(link)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    assert cookie.startswith(f"ncm_{served.url.rpartition(':')[2]}=")
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    secret = cookie.partition("=")[2].partition(";")[0]
    files = "".join(path.name + path.read_text() for path in (served.home / "web-sessions").iterdir())
    assert secret not in files and link.rpartition("/")[2] not in files


@pytest.mark.parametrize("path", ["/", "/review", "/search?q=x", "/g/main/review", "/no-such-screen"])
def test_without_a_session_nothing_is_shown(served: Served, path: str):
    answer = httpx2.get(served.url + path)
    assert answer.status_code == 401 and "ncm web" in answer.text
    wrong = httpx2.get(served.url + path, headers={"Cookie": f"ncm_{served.url.rpartition(':')[2]}=guessed"})
    assert wrong.status_code == 401


def test_no_token_and_no_shared_scope_opens_the_page(served: Served, browser: Browser):
    agent = command(served.home, "token", "new").splitlines()[0]
    for token in (agent, served.token):
        answer = httpx2.get(served.url + "/review", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 403, answer.text
    assert browser.get("/review?shared=true").status_code == 403
    assert browser.get("/review", **{"X-NanoClaw-Shared": "true"}).status_code == 403
    assert "may not" in command(served.home, "web", "--print", "--shared")


def test_the_cookie_does_not_open_the_api(browser: Browser):
    assert browser.get("/api/v1/status").status_code == 401


def test_logout_ends_every_session(served: Served):
    one, other = Browser(served), Browser(served)
    assert one.get("/").status_code == other.get("/").status_code == 200
    command(served.home, "web", "--logout")
    assert one.get("/").status_code == other.get("/").status_code == 401


def test_leaving_ends_this_session_only(served: Served):
    one, other = Browser(served), Browser(served)
    assert one.send("/leave").status_code == 401
    assert one.get("/").status_code == 401 and other.get("/").status_code == 200


@pytest.mark.parametrize(
    ("headers", "csrf", "status"),
    [
        ({}, True, 403),  # a cookie alone, without a word on who asks
        ({"Origin": "http://evil.example"}, True, 403),
        ({"Origin": "null"}, True, 403),
        ({"Sec-Fetch-Site": "cross-site"}, True, 403),
        ({"Sec-Fetch-Site": "same-origin"}, False, 403),  # no token of the form
        ({"Sec-Fetch-Site": "same-origin"}, True, 200),
        ({"Host": "evil.example"}, True, 421),
    ],
)
def test_a_change_needs_the_browsers_word_and_the_forms_token(
    browser: Browser, headers: dict[str, str], csrf: bool, status: int
):
    data = {"text": "written by the form", "csrf": browser.csrf if csrf else "0" * 64}
    assert browser.client.post("/write", data=data, headers=headers).status_code == status


def test_every_answer_carries_the_policy(browser: Browser):
    for path in ("/", "/review", "/static/page.css", "/no-such-screen", "/search?since=x&q=y"):
        policy = browser.get(path).headers["content-security-policy"]
        assert (
            "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        )
    assert browser.get("/no-such-screen").status_code == 404


def test_no_page_has_inline_scripts_styles_or_foreign_addresses(browser: Browser):
    for template in sorted((WEB / "templates").glob("*.html")):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|https?://|\|safe\b", text), (
            template.name
        )


# ---- assets ----


def test_the_vendored_scripts_are_what_their_list_says_and_have_their_licences():
    import hashlib

    listed = dict(
        re.findall(r"`(\S+\.js)` \|.*?\| `([0-9a-f]{64})`", (WEB / "static" / "VENDORED.md").read_text())
    )
    found = {path.name for path in (WEB / "static").glob("*.min.js")}
    assert set(listed) == found
    for name, digest in listed.items():
        assert hashlib.sha256((WEB / "static" / name).read_bytes()).hexdigest() == digest
        assert (WEB / "static" / "licences" / f"{name.partition('.')[0]}.txt").read_text().strip()


# ---- screens ----


def test_home_says_what_there_is_and_writes_a_line(browser: Browser):
    answer = browser.send("/write", text="The kiln is booked for Monday", tag="decision")
    assert "Written to today's log." in answer.text
    assert "The kiln is booked" in command(browser.served.home, "log")
    assert "Injected lately" in browser.text("/")


def test_a_proposal_is_accepted_and_the_decision_taken_back(browser: Browser):
    home = browser.served.home
    proposal = propose(home, PROMOTED)
    page = browser.get("/review").text
    assert PROMOTED in read(page) and "memory/" in read(page)
    before = (home / "workspace" / "MEMORY.md").read_text()
    done = browser.send("/review", decide=f"accept {proposal}")
    assert "Accepted." in read(done.text) and proposal not in done.text.replace(f'value="{proposal}"', "")
    assert PROMOTED in (home / "workspace" / "MEMORY.md").read_text()
    undone = browser.send("/review/undo", undo=proposal)
    assert f"accept {proposal}" in undone.text
    assert (home / "workspace" / "MEMORY.md").read_text() == before
    reworded = browser.send(
        "/review", decide=f"edit {proposal}", **{f"text-{proposal}": "Invoices: new ledger"}
    )
    assert "Accepted." in read(reworded.text)
    assert "- Invoices: new ledger" in (home / "workspace" / "MEMORY.md").read_text()


def test_a_rejected_proposal_is_gone_for_good(browser: Browser):
    home = browser.served.home
    proposal = propose(home, "The archive closes in December")
    assert "Rejected." in browser.send("/review", decide="reject", id=[proposal]).text
    command(home, "upkeep", "promote")
    assert "archive closes" not in browser.text("/review")


def test_search_shows_hits_with_the_reason_and_keeps_to_its_filters(browser: Browser):
    command(browser.served.home, "write", "The lighthouse lamp is checked on Sundays")
    command(browser.served.home, "graph", "add", "Lighthouse", "lamp", "halogen")
    found = browser.text("/search?q=lighthouse+lamp")
    assert "checked on Sundays" in found and "halogen" in found and "Why: words" in found
    facts = browser.text("/search?q=lighthouse+lamp&kind=facts")
    assert "halogen" in facts and "checked on Sundays" not in facts
    assert "checked on Sundays" not in browser.text("/search?q=lighthouse+lamp&until=2020-01-01")
    assert browser.get("/search?q=x&since=soon").status_code == 400


def test_attack_texts_are_shown_as_text(browser: Browser):
    attack = "<script>alert(1)</script> <img src=x onerror=alert(2)> {{7*7}} \u202etxt \x1b[31m"
    page_of = browser.served.home / "workspace" / "memory" / "crane.md"
    page_of.write_text(f"# Harbour crane\n\nThe harbour crane: {attack}\n")
    page = browser.get("/search?q=harbour+crane").text
    assert "<script>alert" not in page and "<img" not in page and "\u202e" not in page and "\x1b" not in page
    assert "<script>alert(1)</script>" in read(page) and "{{7*7}}" in read(page) and "\\u202e" in read(page)
