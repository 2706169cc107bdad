"""A topic that is followed in a real chromium: by keyboard, paused, hidden, without scripts, and with the
worst records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.console.chromium import opened
from tests.console.serving import CLUSTERS, MadeUpSource, served

RECORDS = "/topics/orders/records"
SECONDS = 60.0


@pytest.fixture
def source() -> MadeUpSource:
    return MadeUpSource()


@pytest.fixture
def url(source: MadeUpSource) -> Iterator[str]:
    with served(CLUSTERS["small"](), source=source) as found:
        yield found


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows(page: Page) -> int:
    count: int = page.locator("article.record").count()
    return count


def pressed_to(page: Page, name: str) -> None:
    """By the tabulator alone."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"{name} cannot be reached by keyboard")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_it_follows_and_nothing_is_wrong_with_it(browser: Browser, url: str, width: int, scheme: str) -> None:
    page = opened(browser, width, scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.goto(url + RECORDS)
    before = rows(page)
    page.get_by_role("button", name="Follow").click()
    page.wait_for_url("**live=1**")
    page.wait_for_function("was => document.querySelectorAll('article.record').length > was", arg=before + 11)
    assert page.locator(".said").inner_text() == "Following"
    assert "that are not shown" in page.locator(".counted").inner_text()
    assert not page.locator(".still").is_visible()
    assert "taken" not in page.title()
    assert page.locator("main script, main img, main h1:has-text('not ours'), main b b").count() == 0
    text = page.locator("main").inner_text()
    assert "\u202e" not in text
    assert "⟨U+202E⟩gnp.exe" in text
    assert said == []
    page.get_by_role("button", name="Pause").click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_by_keyboard_it_is_paused_and_goes_on_where_it_was(
    browser: Browser, url: str, source: MadeUpSource
) -> None:
    page = opened(browser)
    page.goto(f"{url}{RECORDS}?live=1")
    page.wait_for_function("() => document.querySelectorAll('article.record').length > 22")
    pressed_to(page, "Pause")
    page.keyboard.press("Enter")
    assert page.locator(".said").inner_text() == "Paused"
    until(lambda: source.tails == 0)
    was = rows(page)
    first = page.locator("article.record a").first.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_function("was => document.querySelectorAll('article.record').length > was", arg=was)
    every = page.locator("article.record .where a").all_inner_texts()
    assert len(set(every)) == len(every), "none comes twice"
    assert first in every
    page.context.close()


def test_it_stops_with_its_tab_and_keeps_few_rows(browser: Browser, url: str, source: MadeUpSource) -> None:
    page = opened(browser)
    page.goto(f"{url}{RECORDS}?live=1")
    until(lambda: source.turns > 0 and source.tails == 1)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    until(lambda: source.tails == 0)
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    until(lambda: source.tails == 1)
    page.evaluate(
        "for (let at = 0; at < 400; at++) document.querySelector('section.rows')"
        ".append(document.querySelector('article.record').cloneNode(true))"
    )
    page.wait_for_function("() => document.querySelectorAll('article.record').length === 200")
    page.context.close()
    until(lambda: source.tails == 0)


def test_what_the_brokers_do_not_tell_is_said_with_its_time(browser: Browser, url: str) -> None:
    page = opened(browser)
    page.goto(f"{url}{RECORDS}?live=1&key=gone")
    page.get_by_text("Broker 2 does not answer. Nothing is known since").wait_for()
    page.context.close()


def test_the_fifth_of_one_viewer_is_told_why(browser: Browser, url: str, source: MadeUpSource) -> None:
    pages = [opened(browser) for _ in range(5)]
    for at, page in enumerate(pages):
        page.goto(f"{url}{RECORDS}?live=1")
        until(lambda at=at: source.tails >= min(at + 1, 4))  # type: ignore[misc]  # mypy: no type for a default
    pages[4].get_by_text("Close one of them.").wait_for()
    pages[0].context.close()
    until(lambda: source.tails == 3)
    pages[4].get_by_role("button", name="Go on").click()
    until(lambda: source.tails == 4)
    for page in pages[1:]:
        page.context.close()


def test_without_scripts_the_page_says_that_it_does_not_go_on(browser: Browser, url: str) -> None:
    page = opened(browser, scripts=False)
    page.goto(url + RECORDS)
    page.get_by_label("Filter").fill("offset >= 0")
    page.get_by_role("button", name="Follow").click()
    assert "It does not go on by itself" in page.locator("main").inner_text()
    assert not page.get_by_role("button", name="Pause").is_visible()
    page.get_by_role("link", name="reload it").click()
    assert "live=1" in page.url
    assert "after=" in page.url
    page.context.close()
