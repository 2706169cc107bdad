"""Steps of an exchange in a thread: the loop goes on, and hears what the step has said."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headrace.broker.security.threaded_exchange import LoginThread, ThreadedExchange
from headrace.security.mechanism import Authenticated, AuthenticationFailed, PreparedExchange, Step
from headrace.security.principal import user


class Slow:
    """Waits until it is let go, in whichever thread it is."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.thread: threading.Thread | None = None

    def step(self, token: bytes) -> Step:
        self.thread = threading.current_thread()
        assert self.go.wait(60)
        if token == b"wrong":
            raise AuthenticationFailed("refused")
        if token == b"broken":
            raise ZeroDivisionError
        return Step(token, Authenticated(user("alice")))


async def test_the_loop_goes_on_while_a_step_is_made() -> None:
    thread = LoginThread(asyncio.get_running_loop(), "logins")
    slow = Slow()
    made = ThreadedExchange(slow, thread)
    assert isinstance(made, PreparedExchange)
    prepared = made.prepare(b"token")
    await asyncio.sleep(0)
    assert not prepared.is_done
    slow.go.set()
    await prepared
    assert slow.thread is not None
    assert slow.thread is not threading.current_thread()
    step = made.step(b"token")
    assert (step.reply, step.authenticated) == (b"token", Authenticated(user("alice")))
    with pytest.raises(AuthenticationFailed):
        made.step(b"token")
    thread.stop()


@pytest.mark.parametrize(
    ("token", "error"), [(b"wrong", AuthenticationFailed), (b"broken", ZeroDivisionError)]
)
async def test_an_error_of_the_step_is_raised_where_it_is_taken(token: bytes, error: type[Exception]) -> None:
    thread = LoginThread(asyncio.get_running_loop(), "logins")
    slow = Slow()
    slow.go.set()
    made = ThreadedExchange(slow, thread)
    await made.prepare(token)
    with pytest.raises(error):
        made.step(token)
    thread.stop()


async def test_a_step_counts_for_the_token_that_it_was_made_with() -> None:
    thread = LoginThread(asyncio.get_running_loop(), "logins")
    slow = Slow()
    slow.go.set()
    made = ThreadedExchange(slow, thread)
    with pytest.raises(AuthenticationFailed):
        made.step(b"nothing prepared")
    await made.prepare(b"one")
    with pytest.raises(AuthenticationFailed):
        made.step(b"another")
    thread.stop()


async def test_after_a_stop_nobody_is_told_anything() -> None:
    thread = LoginThread(asyncio.get_running_loop(), "logins")
    first, second = Slow(), Slow()
    running = ThreadedExchange(first, thread).prepare(b"one")
    waiting = ThreadedExchange(second, thread).prepare(b"two")
    thread.stop()
    first.go.set()
    await running
    assert not waiting.is_done
    assert second.thread is None
