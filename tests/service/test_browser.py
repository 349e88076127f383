"""The pages in a real browser: create, watch and stop an experiment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from sightline.service.store import Store
from sightline.service.tokens import create_token
from tests.service.browsing import browser
from tests.service.running import Service, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

SCRIPT = "<img src=x onerror=alert(1)>"
LONG = 200 * "W"
HEBREW = "\u05e9\u05dc\u05d5\u05dd (1) \u05e2\u05d5\u05dc\u05dd"
PATIENCE = 300_000.0  # milliseconds: kernels may have to be compiled first


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@contextlib.contextmanager
def tab(chromium: Browser, width: int = 1200, scripts: bool = True) -> Iterator[Page]:
    """Open a tab; errors and dialogs fail the test."""
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=scripts
    )
    context.set_default_timeout(PATIENCE)
    page, said = context.new_page(), []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "401" not in message.text:  # asks to sign in
            said.append(message.text)

    page.on("console", listen)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    try:
        yield page
        assert said == []
    finally:
        context.close()


def create(page: Page, service: Service, name: str, options: str) -> None:
    page.goto(service.url)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Options, one per line").fill(options)
    page.get_by_label("Numbers with noise").check()
    page.get_by_label("Standard deviation of the noise (optional)").fill("0.1")
    page.get_by_label("Policy").select_option("IDS")
    page.get_by_label("Seed (optional)").fill("1")
    page.get_by_role("button", name="Create experiment").click()
    page.wait_for_url(f"**/experiments/{name}")


def test_create_watch_and_stop(tmp_path: Path, chromium: Browser) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service, tab(chromium) as page:
        create(page, service, "page", f"{SCRIPT}\n{LONG}")
        expect(page.locator("#summary")).to_contain_text("No results yet")
        page.evaluate("window.isFirst = true")  # gone with the first reload
        for _ in range(5):
            made = service("POST", "/v1/experiments/page/decisions", {}).body
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
        expect(page.locator("#summary")).to_contain_text("Not settled", timeout=PATIENCE)
        expect(page.locator("#summary dd").first).to_have_text("5")
        assert page.evaluate("window.isFirst")
        page.get_by_text("Stop", exact=True).click()
        page.get_by_role("button", name="Stop permanently").click()
        expect(page.locator("#state")).to_have_text("stopped", timeout=PATIENCE)
        assert service("POST", "/v1/experiments/page/decisions", {}).status == 409


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, chromium: Browser, width: int) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service, tab(chromium, width) as page:
        create(page, service, "page", f"{SCRIPT}\n{LONG}\n{HEBREW}")
        for _ in range(8):
            made = service("POST", "/v1/experiments/page/decisions", {}).body
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
        for path in ("/experiments/page", "/"):
            page.goto(f"{service.url}{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_text("New experiment").click()
        for kind, shown in {
            "Combinations of factors": "Factors, one per line",
            "Options of several contexts": "Context and option, one pair per line",
            "Which of two is better?": "Options, one per line",
        }.items():
            page.get_by_label(kind).check()
            expect(page.get_by_label(shown)).to_be_visible()
        expect(page.get_by_role("group", name="Rewards")).to_be_hidden()
        expect(page.get_by_label("Probability of settling on a wrong option")).to_be_hidden()
        page.get_by_label("Once the best option is settled").select_option("commit")
        expect(page.get_by_label("Probability of settling on a wrong option")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_sign_in_without_scripts(tmp_path: Path, chromium: Browser) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url, serving=False) as store:
        token = create_token(store, "me", "experimenter")
    with running(url) as service, tab(chromium, scripts=False) as page:
        page.goto(service.url)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{service.url}/")
        create(page, service, "page", "a\nb")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#state")).to_have_text("paused", timeout=PATIENCE)
        (cookie,) = page.context.cookies()
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/sign-in")
        assert page.context.cookies() == []
