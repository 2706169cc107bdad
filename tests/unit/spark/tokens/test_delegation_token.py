"""A token in the driver's hands: renewed while it is needed, expired afterwards, never shown."""

from __future__ import annotations

import logging
import pickle
import threading

import pytest

from headrace.config.secret import Secret
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.tokens.admin import Token, TokenFailed
from headrace.spark.tokens.delegation_token import DelegationToken

_CANARY = "Y2FuYXJ5LWhtYWM="
_HOUR = 3_600_000


class Brokers:
    """Their clock is an hour before the driver's, or any other: nobody may mind."""

    def __init__(self, lives: int, failures: int = 0) -> None:
        self.now_ms = 0
        self.calls: list[str] = []
        self._ends_ms = lives * _HOUR
        self._failures = failures

    def create(self, lifetime_ms: int | None) -> Token:
        return Token("the-id", Secret(_CANARY), "User:alice", 0, min(_HOUR, self._ends_ms), self._ends_ms)

    def renew(self, token: Token, period_ms: int) -> int:
        self.calls.append("renew")
        if self._failures:
            self._failures -= 1
            raise TokenFailed("the brokers at b:1 did not renew the token: they sleep")
        return min(self.now_ms + period_ms, self._ends_ms)

    def expire(self, token: Token) -> None:
        self.calls.append("expire")

    def brokers(self, kafka: KafkaProperties) -> list[str] | None:
        raise NotImplementedError


class Pauses(threading.Event):
    """Time passes while somebody waits, and for as often as it is told."""

    def __init__(self, brokers: Brokers, often: int) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self.over = threading.Event()
        self._brokers = brokers
        self._often = often

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        if len(self.seconds) == self._often:
            self.over.set()
            return super().wait()
        self.seconds.append(timeout)
        self._brokers.now_ms += int(timeout * 1000)
        return False


def _token(brokers: Brokers, stop: threading.Event | None = None) -> DelegationToken:
    return DelegationToken(brokers, brokers.create(None), KafkaProperties({"bootstrap.servers": "b:1"}), stop)


def test_it_is_renewed_in_time_and_expired_at_the_end() -> None:
    brokers = Brokers(lives=10)
    pauses = Pauses(brokers, 3)
    with _token(brokers, pauses) as token:
        assert pauses.over.wait(30)
        assert token.expires.timestamp() * 1000 == brokers.now_ms + _HOUR
    assert pauses.seconds == [2700.0] * 3
    assert brokers.calls == ["renew"] * 3 + ["expire"]


def test_brokers_that_fail_are_asked_again_soon(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers(lives=10, failures=2)
    pauses = Pauses(brokers, 4)
    with _token(brokers, pauses):
        assert pauses.over.wait(30)
    assert pauses.seconds == [2700.0, 60.0, 60.0, 2700.0]
    assert len([each for each in caplog.messages if "they sleep" in each]) == 2


def test_a_token_at_its_end_is_told_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers(lives=2)
    pauses = Pauses(brokers, 99)
    with _token(brokers, pauses) as token:
        assert token._thread is not None
        token._thread.join(30)
        assert token.expires == token.ends
    assert brokers.calls == ["renew", "renew", "expire"]
    assert any("cannot be renewed: start with another" in each for each in caplog.messages)


def test_what_ends_it_badly_does_not_hide_what_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    class Gone(Brokers):
        def expire(self, token: Token) -> None:
            raise TokenFailed("the brokers at b:1 did not expire the token: they are gone")

    with pytest.raises(ZeroDivisionError), _token(Gone(lives=10)):
        _ = 1 // 0
    assert "they are gone" in caplog.text


def test_nothing_shows_its_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    brokers = Brokers(lives=2, failures=1)
    with _token(brokers, Pauses(brokers, 99)) as token:
        assert token._thread is not None
        token._thread.join(30)
    assert "the-id of User:alice" in repr(token)
    assert _CANARY not in f"{token!r} {token} {vars(token)} {caplog.text}"
    with pytest.raises(TypeError):
        pickle.dumps(token)
