"""Make the pictures of the page in docs/images from the demo home: `make screenshots` (needs `make browser`)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
NCM = [sys.executable, "-m", "nanoclaw_memory"]
MORE = (
    "graph relate Mara works_on Lighthouse",
    "graph relate Lighthouse uses Keystone",
    "graph relate Keystone depends_on PostgreSQL",
    "graph relate Tomas owns Keystone",
    "graph relate Lighthouse serves Partners",
    "upkeep promote",
)
SCREENS = {
    "home": "/",
    "review": "/review",
    "search": "/search?q=database+migration",
    "graph": "/graph?entity=Keystone&depth=2",
    "lines": "/pages/MEMORY.md?view=lines",
    "turn": "/turn",
}


def main() -> None:
    """Build the demo home, serve it, and take a picture of each screen; the last one in the dark."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        subprocess.run([sys.executable, ROOT / "examples" / "demo.py", home], check=True, capture_output=True)
        for command in MORE:
            subprocess.run([*NCM, "--home", home, *command.split()], check=True, capture_output=True)
        server = subprocess.Popen(
            [*NCM, "--home", home, "--json", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout
            take_all(home, json.loads(server.stdout.readline())["url"])
        finally:
            server.terminate()
            server.wait(30)


def take_all(home: Path, url: str) -> None:
    """A picture of each screen."""
    link = subprocess.run(
        [*NCM, "--home", home, "web", "--print"], check=True, capture_output=True, text=True
    )
    with sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-quic", "--enable-unsafe-swiftshader"]
        browser = running.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        page = browser.new_page(viewport={"width": 1080, "height": 720}, locale="en-US")
        page.goto(link.stdout.strip())
        for name, path in SCREENS.items():
            if name == "lines":  # with a line that comes from a proposal
                page.goto(f"{url}/review")
                page.get_by_role("button", name="Accept", exact=True).last.click()
            page.goto(url + path)
            take(page, name)
        browser.close()


def take(page: Page, name: str) -> None:
    """One picture, once the screen is still."""
    if name == "turn":
        page.emulate_media(color_scheme="dark")
        page.get_by_label("A message to an agent").fill("What did we say about verifying webhooks?")
        page.get_by_role("button", name="Show").click()
    if name == "graph":
        page.locator("#drawing[data-nodes]").wait_for()
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"{name}.png")
    print(f"wrote docs/images/{name}.png")


if __name__ == "__main__":
    main()
