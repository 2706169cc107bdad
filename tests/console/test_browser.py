"""The console in a real chromium: nothing against the policy, nothing that axe finds, a keyboard is enough,
and so is a browser without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from headrace.console.services.services import Services
from headrace.observe.metadata_changes import MetadataChange
from tests.console import made_up_services
from tests.console.chromium import opened
from tests.console.made_up_access import HOSTILE_USER, UNANSWERED
from tests.console.made_up_changes import Obedient, made_up_changes
from tests.console.serving import CLUSTERS, HOSTILE, Still, served, still
from tests.unit.observe.made_up import NOW_MS, small_look

QUESTION: Final = "/access/question?principal=intern&operation=READ&kind=topic&name=orders&host=10.0.0.9"
HOSTILE_NAME: Final = quote(HOSTILE_USER, safe="")
STRANGE_NAME: Final = quote(made_up_services.HOSTILE, safe="")
RECORDS: Final = "/topics/orders/records"
SERVICES: Final = (
    *("/schemas", "/schemas/orders-value", "/schemas/orders-value?version=1&against=2", "/connectors"),
    *(f"/schemas/{STRANGE_NAME}", f"/connectors/{STRANGE_NAME}", "/connectors/warehouse"),
)
PAGES: Final = {
    "small": (
        *("/", "/topics", "/topics/orders", RECORDS, f"{RECORDS}/0/0", "/groups", "/groups/reports"),
        *("/brokers", "/audit", "/audit/orders", "/pipeline", "/moves", "/transactions", "/changes", "/nope"),
        *(
            "/access",
            "/access/rules",
            "/access/others",
            QUESTION,
            "/access/question",
            "/topics/orders/access",
            "/tier",
        ),
        *(
            "/access/principals/User:shop",
            "/access/principals/User:%2A",
            f"/access/principals/{HOSTILE_NAME}",
        ),
        *SERVICES,
    ),
    "empty": ("/connectors", "/", "/topics", "/groups", "/audit", "/pipeline"),
    "broken": ("/", "/topics", "/topics/orders", "/groups", "/groups/billing", "/brokers", "/audit"),
    "huge": ("/topics", "/groups"),
    "tiered": ("/tier", "/tier?sort=name", "/tier/orders", "/tier/young", "/topics/orders"),
    "outage": ("/tier", "/tier/orders", "/tier/ledger", "/topics/orders"),
}
PLAN: Final = "/topics/orders/settings/plan?setting.retention.ms=1000"
CHANGING: Final = (
    *("/topics/orders", "/topics/orders/settings", PLAN, f"{PLAN}0", "/topics/orders/deletion"),
    *("/topics/orders/settings/plan?setting.retention.ms=1", "/topics/orders/leaders", "/groups/reports"),
    *("/groups/reports/reset", "/groups/reports/reset/plan?to=earliest", "/changes", "/changes/1"),
)
FORMS: Final = ((1280, "light"), (320, "dark"))


@pytest.fixture(scope="module", params=list(CLUSTERS))
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Its name and the address."""
    with served(CLUSTERS[request.param]()) as url:
        yield request.param, url


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    with served(CLUSTERS["small"]()) as url:
        yield url


@pytest.mark.parametrize(("width", "scheme"), FORMS)
def test_each_page(browser: Browser, cluster: tuple[str, str], width: int, scheme: str) -> None:
    name, url = cluster
    look_at(browser, url, PAGES[name], width, scheme)


def look_at(browser: Browser, url: str, paths: Iterable[str], width: int, scheme: str) -> None:
    page = opened(browser, width, scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    for path in paths:
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path} is wider than {width}"
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert "Headrace" in page.title(), path
    not_found = [text for text in said if "404" in text]
    assert [text for text in said if text not in not_found] == []
    page.context.close()


@pytest.mark.parametrize(("width", "scheme"), FORMS)
def test_each_page_of_a_change(browser: Browser, width: int, scheme: str) -> None:
    with changing() as (url, _):
        change_a_setting(opened(browser, scripts=False), url)
        look_at(browser, url, CHANGING, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), FORMS)
def test_access_that_is_not_known(browser: Browser, width: int, scheme: str) -> None:
    with served(CLUSTERS["small"](), access=UNANSWERED) as url:
        paths = ("/access", "/access/rules", "/access/others", QUESTION, "/topics/orders/access")
        look_at(browser, url, paths, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), FORMS)
@pytest.mark.parametrize("services", [Services(), made_up_services.services(are_down=True)])
def test_services_that_are_not_known(browser: Browser, services: Services, width: int, scheme: str) -> None:
    with served(CLUSTERS["small"](), services=services) as url:
        look_at(browser, url, ("/schemas", "/connectors", RECORDS), width, scheme)


def test_schemas_and_connectors_by_a_keyboard(browser: Browser, small: str) -> None:
    page = opened(browser)
    page.goto(small + "/schemas")
    page.get_by_role("link", name="orders-value").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/schemas/orders-value")
    page.locator("select[name=version]").focus()
    page.keyboard.press("1")
    page.get_by_role("button", name="Show").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**version=1**")
    page.goto(f"{small}/connectors/{STRANGE_NAME}")
    trace = page.locator("details pre")
    assert not trace.is_visible()
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    trace.wait_for()
    assert page.title() != "taken"
    page.context.close()


def test_what_is_unfolded_stays_so(browser: Browser) -> None:
    watch: Still = CLUSTERS["small"]()
    with served(watch) as url:
        page = opened(browser)
        page.clock.install()
        page.goto(f"{url}/connectors/{STRANGE_NAME}")
        page.locator("summary").click()
        assert watch.snapshot is not None
        watch.snapshot = watch.snapshot._replace(number=99, at_ms=NOW_MS + 3_600_000)
        before = page.locator(".standing .quiet").inner_text()
        page.clock.run_for(6000)
        page.wait_for_function(
            "was => document.querySelector('.standing .quiet').innerText !== was", arg=before
        )
        assert page.locator("details[open]").count() == 1
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
        page.context.close()


@contextmanager
def changing() -> Iterator[tuple[str, Obedient]]:
    making, obedient = made_up_changes()
    watch = CLUSTERS["small"]()
    watch.changes = (MetadataChange(NOW_MS - 5000, NOW_MS, "orders", "Topic orders is there."),)
    with served(watch, making) as url:
        yield url, obedient


def change_a_setting(page: Page, url: str) -> None:
    """From the topic's page to the outcome, as a person does it."""
    page.goto(f"{url}/topics/orders")
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("retention.ms").fill("1000")
    page.get_by_role("button", name="Show the plan").click()
    assert "1000" in page.locator("ins").inner_text()
    page.get_by_role("button", name="Change topic orders").click()
    page.get_by_text("A look afterwards finds all of it done.").wait_for()
    page.context.close()


def test_a_change_without_scripts_asks_with_its_plan(browser: Browser) -> None:
    with changing() as (url, obedient):
        change_a_setting(opened(browser, scripts=False), url)
        assert obedient.told == ["retention.ms=1000"]
        page = opened(browser, scripts=False)
        page.goto(f"{url}/topics/orders")
        page.get_by_role("link", name="Delete this topic").click()
        page.get_by_label("Type orders to go on").fill("clicks")
        page.get_by_role("button", name="Delete topic orders").click()
        assert "Nothing was changed: topic orders has another name." in page.locator("main").inner_text()
        assert obedient.told == ["retention.ms=1000"]
        page.context.close()


def test_a_change_by_keyboard_alone(browser: Browser) -> None:
    with changing() as (url, obedient):
        page = opened(browser)
        page.goto(f"{url}/topics/orders/deletion")
        page.locator("main a").first.focus()
        for _ in range(9):
            if page.evaluate("document.activeElement.id") == "typed":
                break
            page.keyboard.press("Tab")
        page.keyboard.type("orders")
        page.keyboard.press("Enter")
        page.wait_for_url("**/changes/1")
        assert obedient.told == ["delete orders"]
        page.context.close()


def test_another_sites_form_changes_nothing(browser: Browser) -> None:
    """With the plan's own fields, which it could not know."""
    with changing() as (url, obedient), changing() as (other, _):
        page = opened(browser)
        page.goto(f"{url}{PLAN}")
        fields = page.locator("form.confirm input").evaluate_all(
            "all => all.map(one => [one.name, one.value])"
        )
        page.goto(other.replace("127.0.0.1", "localhost"))
        page.context.route(
            "**/made-up",
            lambda route: route.fulfill(
                content_type="text/html",
                body=f"<form method=post action='{url}/topics/orders/settings/plan'>"
                + "".join(f"<input name='{name}' value='{value}'>" for name, value in fields)
                + "<button>Go</button></form>",
            ),
        )
        page.goto(f"{other.replace('127.0.0.1', 'localhost')}/made-up")
        with page.expect_navigation() as moved:
            page.get_by_role("button", name="Go").click()
        answered = moved.value
        assert answered is not None
        assert answered.status == 403
        assert obedient.told == []
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


@pytest.mark.parametrize("scripts", [True, False])
def test_where_history_lies_by_a_keyboard_with_scripts_and_without(browser: Browser, scripts: bool) -> None:
    with served(CLUSTERS["tiered"]()) as url:
        page = opened(browser, scripts=scripts)
        page.goto(url + "/")
        page.get_by_role("link", name="Tier", exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/tier")
        names = page.locator(".stratum h3 a")
        assert names.all_inner_texts()[0] == "clicks"
        page.get_by_role("link", name="the longest wait").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**sort=-waiting")
        assert names.all_inner_texts()[0] == "orders"
        names.first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/tier/orders")
        assert page.locator("tbody tr").count() == 6
        lane = page.locator(".lanes svg").first.bounding_box()
        assert lane is not None
        assert lane["width"] > 300
        page.goto(url + "/topics/orders")
        page.get_by_role("link", name="Where its history lies").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/tier/orders")
        page.context.close()


def test_the_whole_menu_is_seen_at_1280(browser: Browser, small: str) -> None:
    page = opened(browser)
    page.goto(small + "/")
    menu = page.locator(".top nav")
    assert menu.evaluate("each => each.scrollWidth <= each.clientWidth")
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
