"""The page in a real Chromium: every screen by clicking and by keyboard, with and without scripts, readable for all."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Served, serving, start
from test_page import command, propose

playwright = pytest.importorskip(
    "playwright.sync_api", reason="NO BROWSER TESTS: Playwright is not installed; run: make browser"
)
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER TESTS: there is no chromium; run: make browser"),
    pytest.mark.xdist_group("browser"),
]
AXE = (Path(__file__).parents[1] / "vendored" / "axe.min.js").read_text(encoding="utf-8")
ARGUMENTS = (
    "--no-sandbox --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --enable-unsafe-swiftshader"
).split()
REPORTS = """document.addEventListener(
    "securitypolicyviolation", (report) => (window.reports ??= []).push(report.violatedDirective))"""
SCREENS = (
    "/ /review /search?q=harbour /turn /graph /graph?entity=Heron&depth=2 /timeline /changes?since=2026-01-01 /pages "
    "/pages/MEMORY.md /pages/MEMORY.md?view=lines /pages/MEMORY.md?view=edit /pages/MEMORY.md?view=history /entries "
    "/lessons /lessons/1 /conversations /conversations/talk /transcripts /groups /forget /settings /audit "
    "/audit/check /health /no-such-screen"
).split()
ATTACK = '<script>alert(1)</script><img src=x onerror="alert(2)"><a href="javascript:alert(3)" hx-get="/forget">x</a>'


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("browser") / "home"
    with serving(home, "--no-upkeep") as one:
        fill(home)
        yield one


def fill(home: Path) -> None:
    """Something on every screen, and an attack in each kind of text."""
    memory = home / "workspace" / "memory"
    (memory / "harbour.md").write_text(
        f"# Harbour\n\nThe harbour crane {ATTACK}\n\n[link](javascript:alert(4))\n"
    )
    command(home, "write", f"The harbour lamp {ATTACK}", "--tag", "decision")
    for entity, relation, other in (
        ("Heron", "uses", "Osprey"),
        ("Osprey", "needs", "Kite"),
        ("Ida", "owns", "Heron"),
    ):
        command(home, "graph", "relate", entity, relation, other)
    command(home, "graph", "add", "Heron", "owner", "Tomas", "--valid-from", "2026-01-05")
    command(home, "graph", "add", "Heron", "owner", f"Lena {ATTACK}", "--valid-from", "2026-03-05")
    command(home, "entries", "store", f"The harbour master {ATTACK}", "--type", "fact")
    command(home, "lessons", "add", f"Name the harbour {ATTACK}")
    command(
        home, "--session", "talk", "exchange", "add", "--user", f"The harbour? {ATTACK}", "--agent", ATTACK
    )
    command(home, "tasks", "add", f"Look at the harbour {ATTACK}", "--cron", "0 9 * * *")
    propose(home, f"The harbour wall {ATTACK}")


class Tab:
    """A tab of a browser of its own, which notices dialogs, errors and reports of the policy."""

    def __init__(self, chromium, served: Served, **options) -> None:
        self.served = served
        self.context = chromium.new_context(viewport={"width": 1100, "height": 800}, **options)
        self.context.set_default_timeout(15_000)
        playwright.expect.set_options(timeout=15_000)
        self.page = self.new()
        self.page.goto(command(served.home, "web", "--print"))

    def new(self):
        page = self.context.new_page()
        page.add_init_script(REPORTS)
        self.wrong: list[str] = []
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self._note)
        return page

    def _note(self, message) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.wrong.append(message.text)

    def go(self, path: str):
        return self.page.goto(self.served.url + path)

    def check(self) -> None:
        assert self.wrong == []
        assert self.page.evaluate("window.reports ?? []") == []


@pytest.fixture
def tab(chromium, served: Served) -> Iterator[Tab]:
    one = Tab(chromium, served)
    yield one
    one.check()
    one.context.close()


@pytest.fixture
def plain(chromium, served: Served) -> Iterator[Tab]:
    """A browser without scripts."""
    one = Tab(chromium, served, java_script_enabled=False)
    yield one
    one.context.close()


# ---- every screen ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_is_accessible_and_keeps_to_the_policy(chromium, served: Served, scheme: str):
    tab = Tab(chromium, served, color_scheme=scheme, locale="de-DE" if scheme == "dark" else "en-US")
    found = []
    for path in SCREENS:
        tab.go(path)
        tab.page.evaluate(AXE)
        for one in tab.page.evaluate("axe.run()")["violations"]:
            found.append((path, one["id"], [node["html"][:200] for node in one["nodes"]][:3]))
        tab.check()
    tab.context.close()
    assert found == []


def test_every_screen_fits_a_phone(chromium, served: Served):
    tab = Tab(chromium, served)
    tab.page.set_viewport_size({"width": 360, "height": 640})
    wide = []
    for path in SCREENS:
        tab.go(path)
        if tab.page.evaluate("document.documentElement.scrollWidth") > 360:
            wide.append(path)
    tab.context.close()
    assert wide == []


def test_every_screen_is_reached_by_its_link_without_scripts(plain: Tab):
    plain.go("/")
    names = plain.page.locator("header nav a").all_text_contents()
    assert len(names) == 14
    for name in names:
        plain.page.get_by_role("navigation", name="Screens").get_by_role(
            "link", name=name, exact=True
        ).click()
        assert plain.page.locator("h1").inner_text()
        assert plain.page.locator(".problem").count() == 0


# ---- review ----


def test_review_by_keyboard(tab: Tab):
    home = tab.served.home
    lines = ["The gate is painted green", "The ferry leaves at seven", "The anchor weighs a ton"]
    ids = [propose(home, line) for line in lines]
    page, text = home / "workspace" / "MEMORY.md", tab.page.locator("main")
    tab.go("/review")
    choose(tab, lines[0])
    tab.page.keyboard.press("a")
    playwright.expect(text).to_contain_text("Accepted.")
    assert lines[0] in page.read_text()
    tab.page.keyboard.press("u")
    playwright.expect(text).to_contain_text("Taken back")
    assert lines[0] not in page.read_text()
    choose(tab, lines[1])
    tab.page.keyboard.press("e")
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("The ferry leaves at eight")
    tab.page.get_by_role("button", name="Accept these words").locator("visible=true").click()
    playwright.expect(text).to_contain_text("Accepted.")
    assert "The ferry leaves at eight" in page.read_text()
    choose(tab, lines[2])
    tab.page.keyboard.press("r")
    playwright.expect(text).to_contain_text("Rejected.")
    assert lines[2] not in page.read_text()
    choose(tab, lines[0])
    tab.page.keyboard.press("x")
    tab.page.get_by_role("button", name="Reject what is ticked").click()
    playwright.expect(text).to_contain_text("Rejected.")
    assert all(line not in tab.page.locator("form .rows").inner_text() for line in lines)
    assert ids


def choose(tab: Tab, words: str) -> None:
    """Move down with `j` until the item with these words is chosen."""
    count = tab.page.locator("[data-item]").count()
    tab.page.evaluate("document.activeElement.blur()")
    for _ in range(count + 1):
        tab.page.keyboard.press("j")
        if words in (tab.page.evaluate("document.activeElement.innerText") or ""):
            return
    raise AssertionError(words)


def test_review_without_scripts(plain: Tab):
    proposal = propose(plain.served.home, "The buoy is repainted")
    plain.go("/review")
    plain.page.locator(f'button[value="accept {proposal}"]').click()
    assert "Accepted." in plain.page.locator("main").inner_text()
    plain.page.get_by_role("button", name="Undo").click()
    plain.page.locator(f'input[value="{proposal}"]').check()
    plain.page.get_by_role("button", name="Accept what is ticked").click()
    assert "The buoy is repainted" in (plain.served.home / "workspace" / "MEMORY.md").read_text()


# ---- search ----


def test_search_as_one_types(tab: Tab):
    tab.go("/search")
    tab.page.keyboard.type("harbour crane")  # the field is chosen already
    found = tab.page.locator("#found")
    playwright.expect(found).to_contain_text("The harbour crane <script>")
    tab.page.wait_for_url(re.compile(r"q=harbour(\+|%20)crane"))
    assert tab.page.evaluate("document.activeElement.id") == "q"
    around = found.locator("details", has_text="Lines around it").first
    around.locator("summary").click()
    playwright.expect(around.locator(".lines")).to_contain_text("# Harbour")
    tab.page.get_by_text("Filters").click()
    tab.page.get_by_label("Facts").check()
    playwright.expect(found).not_to_contain_text("The harbour crane")


def test_what_is_typed_before_the_scripts_have_started_is_searched_for(tab: Tab):
    tab.page.add_init_script("""document.addEventListener("readystatechange", () => {
        const field = document.querySelector("#q");
        if (document.readyState === "interactive" && field) field.value = "harbour crane"})""")
    tab.go("/search")
    playwright.expect(tab.page.locator("#found")).to_contain_text("The harbour crane <script>")


def test_search_without_scripts(plain: Tab):
    plain.go("/search")
    plain.page.get_by_label("Question or words").fill("harbour crane")
    plain.page.get_by_role("button", name="Search").click()
    assert "The harbour crane <script>" in plain.page.locator("#found").inner_text()


# ---- the graph ----


def test_the_graph_is_drawn_and_goes_back_in_time(tab: Tab):
    tab.go("/graph?entity=Heron&depth=2")
    playwright.expect(tab.page.locator("#drawing")).to_have_attribute("data-nodes", "4")
    assert tab.page.locator("#drawing canvas").count() > 0
    slider = tab.page.locator("#slider input")
    slider.focus()
    tab.page.keyboard.press("Home")
    tab.page.wait_for_url(re.compile("as_of=2026-01-05"))
    facts = tab.page.get_by_role("region", name="Facts")
    playwright.expect(facts).to_contain_text("Tomas")
    assert "Lena" not in facts.inner_text()


def test_the_graph_has_its_table_without_scripts(plain: Tab):
    plain.go("/graph?entity=Heron")
    assert "Osprey" in plain.page.get_by_role("region", name="Relations").inner_text()
    assert not plain.page.locator("#drawing").is_visible()
    plain.page.get_by_text("Set a fact").click()
    form = plain.page.locator("details", has_text="Set a fact")
    form.get_by_label("Key").fill("port")
    form.get_by_label("Value").fill("7001")
    form.get_by_role("button").click()
    assert "7001" in plain.page.get_by_role("region", name="Facts").inner_text()
    row = plain.page.get_by_role("region", name="Facts").get_by_role("row").filter(has_text="7001")
    row.get_by_role("button", name="No longer true").click()
    assert "7001" not in plain.page.get_by_role("region", name="Facts").inner_text()


# ---- what a person does on the other screens ----


@pytest.mark.parametrize("scripts", [True, False])
def test_the_other_screens_by_clicking(chromium, served: Served, scripts: bool):
    tab = Tab(chromium, served, java_script_enabled=scripts)
    page, name = tab.page, f"scripts-{scripts}".lower()
    tab.go("/")
    page.get_by_label("A line for today's log").fill(f"The {name} kiln is warm")
    page.get_by_role("button", name="Write").click()
    assert "Written to today's log." in page.locator("main").inner_text()
    page.get_by_role("link", name="Timeline").click()
    assert f"The {name} kiln is warm" in page.locator("main").inner_text()
    page.get_by_role("link", name="Turn").click()
    page.get_by_label("A message to an agent").fill("Who owns Heron?")
    page.get_by_role("button", name="Show").click()
    assert "GRAPH MEMORY" in page.locator("main").inner_text()
    page.get_by_role("link", name="Entries").click()
    page.get_by_text("Store an entry").click()
    page.get_by_label("What to remember").fill(f"The {name} bread is rye")
    page.get_by_role("button", name="Store", exact=True).click()
    page.get_by_role("button", name="Archive").click()
    assert "archived" in page.locator("main").inner_text()
    page.get_by_role("link", name="Lessons").click()
    page.get_by_text("Add a lesson").click()
    page.get_by_label("What to do").fill(f"Say {name} first")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Retire").click()
    assert "retired" in page.locator("main").inner_text()
    page.get_by_role("link", name="Conversations").click()
    page.get_by_role("link", name="talk").first.click()
    assert "The harbour? <script>" in page.locator("main").inner_text()
    page.get_by_role("link", name="Forget", exact=True).click()
    page.get_by_label("Which").fill(f"The {name} kiln is warm")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Forget it for good").click()
    assert "Forgotten" in page.locator("h2").first.inner_text()
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("button", name=re.compile("Pause|Resume")).first.click()
    assert "Changed." in page.locator("main").inner_text()
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("Key or description contains").fill("maxBootstrapCharsTotal")
    page.get_by_role("button", name="Show").click()
    page.get_by_label("memory.maxBootstrapCharsTotal").fill("140000")
    page.get_by_role("button", name="Save").first.click()
    assert "Saved." in page.locator("main").inner_text()
    page.get_by_role("link", name="Audit").click()
    page.get_by_role("link", name="Check that it is whole").click()
    assert "The log is whole" in page.locator("main").inner_text()
    tab.context.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_two_tabs_edit_one_page(chromium, served: Served, scripts: bool):
    tab = Tab(chromium, served, java_script_enabled=scripts)
    path = served.home / "workspace" / "memory" / "plan.md"
    path.write_text("# Plan\n")
    other = tab.context.new_page()
    for page in (tab.page, other):
        page.goto(f"{served.url}/pages/memory/plan.md?view=edit")
    tab.page.get_by_label("Markdown").fill("# Plan\n\nfirst\n")
    tab.page.get_by_role("button", name="Save").click()
    assert "Saved." in tab.page.locator("main").inner_text()
    other.get_by_label("Markdown").fill("# Plan\n\nsecond\n")
    with other.expect_response(lambda answer: answer.request.method == "POST") as answered:
        other.get_by_role("button", name="Save").click()
    assert answered.value.status == 409
    text = other.locator("main").inner_text()
    assert "first" in text and "second" in other.get_by_label("Your text").input_value()
    assert path.read_text() == "# Plan\n\nfirst\n"
    other.get_by_label("Your text").fill("# Plan\n\nfirst\nsecond\n")
    other.get_by_role("button", name="Save mine over it").click()
    other.locator("main").get_by_text("Saved.").wait_for()
    assert path.read_text() == "# Plan\n\nfirst\nsecond\n"
    other.get_by_role("link", name="Versions").click()
    other.locator("main li a").first.click()
    other.get_by_role("button", name="Restore this version").click()
    other.locator("main").get_by_text("Saved.").wait_for()
    assert path.read_text() == "# Plan\n\nfirst\n"
    tab.context.close()


# ---- the server under an open tab ----


def test_a_restarted_server_knows_the_open_tab_and_a_logout_ends_it(chromium, tmp_path: Path):
    first = start(tmp_path / "home", "--no-upkeep")
    port = first.url.rpartition(":")[2]
    tab = Tab(chromium, first)
    tab.go("/search")
    first.stop()
    tab.page.keyboard.type("no")
    tab.page.wait_for_timeout(600)  # a request that nobody answers leaves the screen as it is
    assert tab.page.get_by_label("Question or words").is_visible()
    second = start(tmp_path / "home", "--no-upkeep", "--port", port, init=False)
    tab.page.keyboard.type("thing")
    playwright.expect(tab.page.locator("#found")).to_contain_text("Nothing in memory answers this")
    command(tmp_path / "home", "web", "--logout")
    tab.page.keyboard.type("s")
    playwright.expect(tab.page.locator("#found")).to_contain_text("ncm web")
    second.stop()
    for one in (first, second):
        one.process.stdout.close()
    tab.context.close()
