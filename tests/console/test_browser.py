"""The console in a real chromium: nothing against the policy, nothing that axe finds, a keyboard is enough,
and so is a browser without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.console.serving import CLUSTERS, HOSTILE, Still, served, still
from tests.unit.observe.made_up import small_look

CHROMIUM: Final = "/usr/bin/chromium"
RECORDS: Final = "/topics/orders/records"
PAGES: Final = {
    "small": (
        *("/", "/topics", "/topics/orders", RECORDS, f"{RECORDS}/0/0", "/groups", "/groups/reports"),
        *("/brokers", "/audit", "/audit/orders", "/pipeline", "/moves", "/transactions", "/nope"),
    ),
    "empty": ("/", "/topics", "/groups", "/audit", "/pipeline"),
    "broken": ("/", "/topics", "/topics/orders", "/groups", "/groups/billing", "/brokers", "/audit"),
    "huge": ("/topics", "/groups"),
}
FORMS: Final = ((1280, "light"), (320, "dark"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )


@pytest.fixture(scope="module", params=list(CLUSTERS))
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Its name and the address."""
    with served(CLUSTERS[request.param]()) as url:
        yield request.param, url


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    with served(CLUSTERS["small"]()) as url:
        yield url


def opened(browser: Browser, width: int = 1280, scheme: str = "light", *, scripts: bool = True) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
    )
    return context.new_page()


@pytest.mark.parametrize(("width", "scheme"), FORMS)
def test_each_page(browser: Browser, cluster: tuple[str, str], width: int, scheme: str) -> None:
    name, url = cluster
    page = opened(browser, width, scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    for path in PAGES[name]:
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width}"
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert "Headrace" in page.title(), path
    not_found = [text for text in said if "404" in text]
    assert [text for text in said if text not in not_found] == []
    page.context.close()


def test_hostile_records_do_nothing(browser: Browser, small: str) -> None:
    page = opened(browser)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    for path in (RECORDS, *(f"{RECORDS}/0/{at}" for at in range(len(HOSTILE)))):
        page.goto(small + path)
        assert "taken" not in page.title()
        assert page.locator("main script, main img, main h1:has-text('not ours'), main b b").count() == 0
        text = page.locator("main").inner_text()
        assert "\u202e" not in text
    page.goto(small + RECORDS)
    assert "⟨U+202E⟩gnp.exe" in page.locator("main").inner_text()
    assert said == []
    page.context.close()


def test_a_keyboard_is_enough(browser: Browser, small: str) -> None:
    page = opened(browser)
    page.goto(small + "/")

    def at() -> str:
        found: str = page.evaluate("document.activeElement.textContent.trim()")
        return found

    page.keyboard.press("Tab")
    assert at() == "Skip to the page"
    for name in ("headrace", "Now", "Topics"):
        page.keyboard.press("Tab")
        assert at() == name
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics")
    page.locator("#q").focus()
    page.keyboard.type("ord")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics?q=ord*")
    row = page.locator("tbody a")
    assert row.count() == 1
    row.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics/orders")
    page.get_by_role("link", name="Records", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/records")
    bar = page.locator(".scrubber a").nth(3)
    bar.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**from=time**")
    page.context.close()


def test_without_scripts(browser: Browser, small: str) -> None:
    page = opened(browser, scripts=False)
    page.goto(small + "/topics")
    page.get_by_role("link", name="Size").click()
    assert page.locator("tbody th a").all_inner_texts()[0] == "orders"
    page.locator("#q").fill("click")
    page.get_by_role("button", name="Find").click()
    assert page.locator("tbody th a").all_inner_texts() == ["clicks"]
    page.goto(f"{small}{RECORDS}")
    page.get_by_label("Filter").fill("value.amount > 1")
    page.get_by_role("button", name="Show").click()
    assert "400,000 of 1,000,000 looked at" in page.locator("main").inner_text()
    page.get_by_role("link", name="Search on").click()
    page.get_by_role("link", name="Search on").click()
    assert "This is the end." in page.locator("main").inner_text()
    page.context.close()


def test_a_search_goes_on_by_itself(browser: Browser, small: str) -> None:
    page = opened(browser)
    page.goto(f"{small}{RECORDS}?filter=true")
    page.get_by_text("This is the end.").wait_for()
    assert "done=800000" in page.url
    page.context.close()


def test_a_page_follows_the_snapshots_and_keeps_the_focus(browser: Browser) -> None:
    watch: Still = CLUSTERS["small"]()
    with served(watch) as url:
        page = opened(browser)
        page.clock.install()
        page.goto(url + "/topics")
        page.locator("tbody a", has_text="orders").focus()
        watch.snapshot = still(small_look(1), small_look(5)).snapshot
        assert watch.snapshot is not None
        watch.snapshot = watch.snapshot._replace(number=99)
        page.clock.run_for(6000)
        page.get_by_role("cell", name="7,500").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "orders"
        page.context.close()
