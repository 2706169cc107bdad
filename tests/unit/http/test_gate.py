"""Who is admitted, and that nothing tells more than that."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.http_listener import HttpListener, Words, http_listener
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.http import passwords as module
from headrace.http.authorization import LONGEST, Basic, Bearer, parse_authorization
from headrace.http.gate import Gate, Unauthenticated
from headrace.http.passwords import Passwords, TooBusy
from headrace.http.tokens import Tokens
from headrace.security.principal import ANONYMOUS, user

_CANARY = "canary-9d2e"
_TOKEN = "0123456789abcdef" + _CANARY


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def listener(*methods: str) -> HttpListener:
    found = http_listener(
        Words("HTTP", "address", "methods", "tokens"),
        "127.0.0.1:1",
        methods,
        "/tokens" if "bearer" in methods else None,
        {},
    )
    assert found is not None
    return found


class Users:
    """Knows one user, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.epoch = 0

    async def check(self, name: str, password: Secret) -> bool:
        self.asked += 1
        return name == "alice" and password.reveal() == _CANARY

    def passwords(self) -> Passwords:
        return Passwords(self.check, lambda: self.epoch)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAILURE_SECONDS", 0.0)


async def test_each_method_admits_and_all_else_is_denied() -> None:
    gate = Gate(listener("basic", "bearer"), Users().passwords(), Tokens({"scraper": _TOKEN}))
    assert await gate.admit(basic("alice", _CANARY), None) == user("alice")
    assert await gate.admit(f"bearer {_TOKEN}", None) == user("scraper")
    assert "Basic" in gate.challenge
    assert "Bearer" in gate.challenge
    for header in (
        None,
        "",
        "Basic",
        "Basic !!!",
        basic("alice", "wrong"),
        basic("bob", _CANARY),
        "Bearer " + _TOKEN[:-1],
        f"Digest {_TOKEN}",
        _TOKEN,
    ):
        with pytest.raises(Unauthenticated) as refused:
            await gate.admit(header, None)
        assert _CANARY not in f"{refused.value!r} {refused.value}"


async def test_a_method_that_was_not_chosen_admits_nobody() -> None:
    gate = Gate(listener("basic"), Users().passwords())
    with pytest.raises(Unauthenticated):
        await gate.admit(f"Bearer {_TOKEN}", None)
    with pytest.raises(Unauthenticated):
        await gate.admit(None, b"a certificate that nobody asked for")
    gate = Gate(listener("bearer"), None, Tokens({"scraper": _TOKEN}))
    with pytest.raises(Unauthenticated):
        await gate.admit(basic("alice", _CANARY), None)


async def test_nobody_is_asked_where_no_method_is_set() -> None:
    assert await Gate(listener()).admit(None, None) == ANONYMOUS


async def test_a_right_password_is_checked_once_and_a_wrong_one_each_time() -> None:
    users = Users()
    passwords = users.passwords()
    for _ in range(3):
        assert await passwords.are_right("alice", Secret(_CANARY))
    assert users.asked == 1
    for _ in range(3):
        assert not await passwords.are_right("alice", Secret("wrong"))
    assert users.asked == 4


async def test_what_is_remembered_ends_with_a_change_and_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    users = Users()
    passwords = users.passwords()
    await passwords.are_right("alice", Secret(_CANARY))
    users.epoch += 1
    await passwords.are_right("alice", Secret(_CANARY))
    assert users.asked == 2
    loop = asyncio.get_running_loop()
    later = loop.time() + module.REMEMBERED_SECONDS + 1
    monkeypatch.setattr(loop, "time", lambda: later)
    await passwords.are_right("alice", Secret(_CANARY))
    assert users.asked == 3


async def test_a_user_s_name_and_password_cannot_be_cut_elsewhere() -> None:
    """`alice` with `1x` is not `alice1` with `x`."""
    asked: list[str] = []

    async def check(name: str, _password: Secret) -> bool:
        asked.append(name)
        return True

    passwords = Passwords(check)
    await passwords.are_right("alice", Secret("1x"))
    await passwords.are_right("alice1", Secret("x"))
    assert asked == ["alice", "alice1"]


@pytest.mark.parametrize("check_seconds", [0.0, 0.003, 0.06, 0.5])
async def test_the_time_of_a_refusal_does_not_tell_how_long_the_check_took(
    monkeypatch: pytest.MonkeyPatch, check_seconds: float
) -> None:
    """That depends on the user: a user who does not exist has no count of iterations."""
    monkeypatch.setattr(module, "FAILURE_SECONDS", 0.1)
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)

    async def check(_name: str, _password: Secret) -> bool:
        monkeypatch.setattr(loop, "time", lambda: now + check_seconds)
        return False

    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert not await Passwords(check).are_right("alice", Secret("wrong"))
    assert check_seconds + sum(slept) == pytest.approx(max(0.1, check_seconds))


async def test_guesses_wait_in_a_bounded_queue() -> None:
    gate = asyncio.Event()

    async def check(_name: str, _password: Secret) -> bool:
        await gate.wait()
        return False

    passwords = Passwords(check)
    guesses = [
        asyncio.ensure_future(passwords.are_right("alice", Secret(str(number))))
        for number in range(module.MOST_WAITING)
    ]
    await asyncio.sleep(0)
    with pytest.raises(TooBusy):
        await passwords.are_right("alice", Secret("one more"))
    gate.set()
    assert not any(await asyncio.gather(*guesses))


def test_headers_are_read_within_bounds_and_show_no_secret() -> None:
    found = parse_authorization(basic("alice", f"{_CANARY}:more"))
    assert found == Basic("alice", Secret(f"{_CANARY}:more"))
    token = parse_authorization(f"Bearer {_TOKEN}")
    assert token == Bearer(Secret(_TOKEN))
    assert _CANARY not in f"{found!r} {token!r}"
    assert parse_authorization("Bearer " + "a" * LONGEST) is None
    assert parse_authorization(basic("", "x")) is None
    assert parse_authorization(basic("a" * 1000, "x")) is None


@given(st.one_of(st.text(), st.binary().map(lambda data: "Basic " + base64.b64encode(data).decode())))
def test_no_header_can_do_more_than_name_nobody(header: str) -> None:
    found = parse_authorization(header)
    assert found is None or isinstance(found, Basic | Bearer)


def test_tokens_come_from_a_file_and_short_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"scraper={_TOKEN}\n")
    tokens = Tokens.read(str(path))
    assert tokens.user_of(Secret(_TOKEN)) == "scraper"
    assert tokens.user_of(Secret(_TOKEN + "x")) is None
    assert _CANARY not in repr(vars(tokens))
    path.write_text("scraper=short-canary\n")
    with pytest.raises(ConfigError, match="scraper is shorter than 16") as refused:
        Tokens.read(str(path))
    assert "short-canary" not in str(refused.value)
    path.write_text(f"a={_TOKEN}\nb={_TOKEN}\n")
    with pytest.raises(ConfigError, match="the same token"):
        Tokens.read(str(path))
    path.write_text("")
    with pytest.raises(ConfigError, match="no line"):
        Tokens.read(str(path))


async def test_guesses_keep_nobody_out_who_was_here_before(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()

    async def check(_name: str, password: Secret) -> bool:
        if password.reveal() != _CANARY:
            await gate.wait()
        return password.reveal() == _CANARY

    passwords = Passwords(check)
    assert await passwords.are_right("alice", Secret(_CANARY))
    guesses = [
        asyncio.ensure_future(passwords.are_right("alice", Secret(str(number))))
        for number in range(module.MOST_WAITING)
    ]
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    later = loop.time() + 2 * module.REMEMBERED_SECONDS
    with monkeypatch.context() as patched:
        patched.setattr(loop, "time", lambda: later)
        assert await passwords.are_right("alice", Secret(_CANARY))
    with pytest.raises(TooBusy):
        await passwords.are_right("bob", Secret("new here"))
    gate.set()
    assert not any(await asyncio.gather(*guesses))
