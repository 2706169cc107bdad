"""Clients choose the names of groups and of themselves: of up to 32 KB, and such that are paths."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest
from starlette.types import ASGIApp

from headrace.console.http.app import application
from headrace.console.http.records import Source
from headrace.console.pages.page import PER_PAGE
from headrace.console.rendering import LONGEST_NAME, environment, link
from headrace.core.ids import TopicPartition
from tests.console.serving import CLUSTERS
from tests.unit.console.asking import ask
from tests.unit.console.test_pages import checked, nobody
from tests.unit.observe.made_up import committed, group, small_look, snapshot_of

MOST_BYTES = 500_000
"""Of a page that anybody asks for every five seconds."""


def app_with(*names: str) -> ASGIApp:
    reads = committed({TopicPartition("orders", 0): 4})
    made = small_look(1)._replace(
        groups={name: group(name) for name in names}, committed=dict.fromkeys(names, reads)
    )
    watch = CLUSTERS["small"]()
    watch.snapshot = snapshot_of(made)
    return application(watch, Source(nobody))


@pytest.mark.parametrize("path", ["/groups", "/topics/orders", "/", "/pipeline", "/connectors"])
def test_names_without_end_make_no_page_without_end(path: str) -> None:
    kinds = ("", "connect-", "mirror-")
    names = [f"{kinds[number % 3]}{number:03}" + "\x01" * 32_000 for number in range(150)]
    assert len(checked(ask(app_with(*names), path))) < MOST_BYTES


def test_a_name_that_is_cut_says_so() -> None:
    text = checked(ask(app_with("a" * 5000), "/groups"))
    assert f"{'a' * LONGEST_NAME}… (5,000 characters)" in text
    assert "a" * (LONGEST_NAME + 1) not in text


def test_whatever_is_shown_has_an_end() -> None:
    shown = environment().from_string("{{ text }}").render(text="\x01" * 10**6)
    assert len(shown) < 100_000
    assert shown.endswith("(1,000,000 characters)")


def test_an_address_is_never_cut() -> None:
    wanted = link("/topics/orders/records", key="k" * 4096, filter="é" * 2000)
    assert environment().from_string("{{ to }}").render(to=wanted) == wanted.replace("&", "&amp;")


def test_of_very_many_readers_the_first_are_shown() -> None:
    text = checked(ask(app_with(*(f"g{number:04}" for number in range(PER_PAGE + 7))), "/topics/orders"))
    assert text.count('href="/groups/g') == PER_PAGE
    assert "7 groups more" in text


def test_a_name_that_means_another_page_is_no_link() -> None:
    """However a browser is given two dots, it goes upwards."""
    text = checked(ask(app_with("..", ".", "...", "a/.."), "/groups"))
    assert {"/groups/...", "/groups/a%2F.."} <= set(re.findall(r'href="(/groups/[^"?]+)"', text))
    for address in re.findall(r'href="(/groups/[^"]*)"', text):
        assert urljoin("http://console/groups", address) == f"http://console{address}"
    assert re.search(r"<th scope=\"row\">\s*\.\.\s*</th>", text)
