"""Whoever is not meant, or does not come from a page of ours, is sent away before any page."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from headrace.console.http.shield import POLICY, Shield, hostname
from tests.unit.console.asking import ask

APP: ASGIApp = Shield(PlainTextResponse("page"), ["console.example"])


@pytest.mark.parametrize("host", ["localhost:9600", "127.0.0.1", "[::1]:9600", "CONSOLE.example:443"])
def test_ours(host: str) -> None:
    answered = ask(APP, "/", host=host)
    assert (answered.status, answered.text) == (200, "page")
    assert answered.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil", "[::2]"])
def test_a_name_that_leads_here_is_not_ours(host: str) -> None:
    answered = ask(APP, "/", host=host)
    assert answered.status == 421
    assert "page" not in answered.text
    assert answered.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9600", "sec_fetch_site": "cross-site"},
        {"origin": "http://127.0.0.1:9601"},
    ],
)
def test_a_form_of_somebody_elses(headers: dict[str, str]) -> None:
    assert ask(APP, "/", method="POST", **headers).status == 403


def test_a_form_of_ours() -> None:
    headers = {"origin": "http://127.0.0.1:9600", "sec_fetch_site": "same-origin"}
    assert ask(APP, "/", method="POST", **headers).status == 200


def test_a_body_has_one_length() -> None:
    """A proxy may have believed the other one: what follows is not taken for a request."""
    answered = ask(APP, "/", method="POST", content_length="4", transfer_encoding="chunked")
    assert (answered.status, answered.headers["connection"]) == (400, "close")
    assert ask(APP, "/", content_length="0").status == 200


FOREIGN = [
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"},
    {"sec_fetch_site": "same-site", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "websocket", "sec_fetch_dest": "empty"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_page_of_somebody_elses_costs_us_nothing(headers: dict[str, str]) -> None:
    """It would not see the answer, but brokers would be asked for it."""
    answered = ask(APP, "/topics/orders/records?filter=true", **headers)
    assert answered.status == 403
    assert answered.text != "page"


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"},
        {"sec_fetch_site": "none", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"},
        {"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"},
        {"origin": "http://127.0.0.1:9600"},
    ],
)
def test_a_link_of_somebody_elses_leads_here(headers: dict[str, str]) -> None:
    assert ask(APP, "/", **headers).status == 200


def test_an_address_without_end() -> None:
    assert ask(APP, "/?q=" + "x" * 70_000).status == 414


def test_names() -> None:
    assert [hostname(each) for each in ("a:1", "a", "[::1]:9", "[::1]", "[")] == [
        "a",
        "a",
        "[::1]",
        "[::1]",
        "",
    ]
