"""A record that is written, and records that are copied, in a real chromium: without scripts, by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.console.chromium import opened
from tests.console.made_up_changes import Obedient, made_up_changes
from tests.console.serving import CLUSTERS, served

RECORDS = "/topics/orders/records"
REPLAY_PLAN = "/topics/orders/replay/plan?records=0:1,0:2&to=clicks"


@pytest.fixture
def changing() -> Iterator[tuple[str, Obedient]]:
    making, obedient = made_up_changes()
    with served(CLUSTERS["small"](), making) as url:
        yield url, obedient


def test_a_record_is_written_without_scripts(browser: Browser, changing: tuple[str, Obedient]) -> None:
    url, obedient = changing
    page = opened(browser, scripts=False)
    page.goto(url + RECORDS)
    page.get_by_role("link", name="Produce a record").click()
    page.get_by_label("Key", exact=True).fill("k")
    page.get_by_role("textbox", name="Value", exact=True).fill("a\nb")
    page.get_by_role("button", name="Show the plan").click()
    assert "<script>document" in page.locator("main").inner_text(), "what is in a record is shown as text"
    assert "produce/plan" in page.url
    assert "?" not in page.url, "what is in a record is not in an address"
    assert obedient.told == []
    page.get_by_role("button", name="Produce a record into orders").click()
    page.get_by_text("The brokers say that it is done.").wait_for()
    assert obedient.told == ["k=a\r\nb"]
    page.context.close()


def test_records_are_chosen_and_copied_by_keyboard(browser: Browser, changing: tuple[str, Obedient]) -> None:
    url, obedient = changing
    page = opened(browser)
    page.goto(url + RECORDS)
    for at in (1, 2):
        page.get_by_role("checkbox").nth(at).focus()
        page.keyboard.press("Space")
    page.get_by_role("button", name="Copy chosen records").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/replay?**")
    assert page.get_by_label("Records, as").input_value() == "0:1, 0:2"
    page.get_by_label("Into topic").fill("clicks")
    page.keyboard.press("Enter")
    page.wait_for_url("**/replay/plan?**")
    page.get_by_role("button", name="Copy 2 records of orders into clicks").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/changes/1")
    assert obedient.told == ["copy 0:1, 0:2 of orders into clicks"]
    page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
@pytest.mark.parametrize(
    "path", [RECORDS, "/topics/orders/produce", "/topics/orders/replay?record=0:1", REPLAY_PLAN]
)
def test_each_page(
    browser: Browser, changing: tuple[str, Obedient], path: str, width: int, scheme: str
) -> None:
    page = opened(browser, width, scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(changing[0] + path)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    page.context.close()


def test_chosen_records_stay_chosen(browser: Browser, changing: tuple[str, Obedient]) -> None:
    page = opened(browser)
    page.clock.install()
    page.goto(changing[0] + RECORDS)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("checkbox").nth(1).check()
    page.locator("h1").click()
    page.clock.run_for(11_000)
    assert page.get_by_role("checkbox").nth(1).is_checked()
    page.get_by_role("checkbox").nth(1).uncheck()
    page.locator("h1").click()
    with page.expect_request(f"**{RECORDS}"):
        page.clock.run_for(6_000)
    assert len(asked) == 1, "while records are chosen the page is left alone"
    page.context.close()
