"""A delegation token for the tasks of a session: only the driver has the user's password or key.

    with DelegationToken.obtain(spark, KafkaProperties.read("alice.properties")) as token:
        orders = stream_topic(spark, "orders", kafka=token.kafka)

Spark's connector can do the like with tokens of its own, for users of Kerberos on YARN and Kubernetes. This
works with every cluster manager, and for the sink, whose tasks are in Python and see none of Spark's tokens.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from pyspark.sql import SparkSession

from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.tokens.admin import JavaTokenAdmin, Token, TokenAdmin, TokenFailed
from headrace.spark.tokens.known import await_known
from headrace.spark.tokens.properties import mechanism_of, token_bootstrap, token_properties

_RENEWED_AFTER: Final = 3 / 4
"""Of its life: what remains is for brokers that do not answer at once."""
_TRIED_AGAIN_AFTER: Final = 1 / 16
_LONGEST_PAUSE: Final = 60.0
"""Between two attempts, where a token lives for hours."""
_log = logging.getLogger(__name__)


class DelegationToken:
    """`kafka` is for the tasks. As a context it is renewed while that lasts, and expired afterwards."""

    def __init__(
        self, admin: TokenAdmin, token: Token, kafka: KafkaProperties, stop: threading.Event | None = None
    ) -> None:
        self._admin = admin
        self._token = token
        self._period_ms = token.expires_ms - token.issued_ms
        """What its first life was, by one clock: so it is no matter what the driver's says."""
        self.kafka = kafka
        self._stop = threading.Event() if stop is None else stop
        self._thread: threading.Thread | None = None

    @classmethod
    def obtain(
        cls,
        spark: SparkSession,
        kafka: Mapping[str, str],
        *,
        bootstrap: str | None = None,
        mechanism: str | None = None,
        lifetime: timedelta | None = None,
    ) -> Self:
        """`kafka` is how the driver logs in. `bootstrap` is where the tasks do, if that is another listener.

        `lifetime` is the longest life of the token, with renewals; what the brokers allow unless it is given.
        Raises ConfigError and TokenFailed, which repeat no secret.
        """
        own = KafkaProperties(kafka)
        where, chosen = token_bootstrap(own, bootstrap), mechanism_of(own, mechanism)
        admin = JavaTokenAdmin(spark, own)
        token = admin.create(None if lifetime is None else int(lifetime.total_seconds() * 1000))
        tasks = token_properties(own, token.token_id, token.hmac, bootstrap=where, mechanism=chosen)
        made = cls(admin, token, tasks)
        try:
            await_known(admin, tasks)
        except BaseException:
            made._end()
            raise
        return made

    @property
    def token_id(self) -> str:
        return self._token.token_id

    @property
    def owner(self) -> str:
        """As in `User:alice`: the tasks have this user's rights."""
        return self._token.owner

    @property
    def expires(self) -> datetime:
        """By the broker's clock, unless it is renewed before."""
        return _moment(self._token.expires_ms)

    @property
    def ends(self) -> datetime:
        """By the broker's clock. Nothing prolongs its life beyond this."""
        return _moment(self._token.ends_ms)

    def renew(self) -> bool:
        """For as long as it was given at first. Whether it can be renewed again. Raises TokenFailed."""
        self._token = self._token._replace(expires_ms=self._admin.renew(self._token, self._period_ms))
        return self._token.expires_ms < self._token.ends_ms

    def expire(self) -> None:
        """At once: nobody logs in with it any more. Raises TokenFailed."""
        self._admin.expire(self._token)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._keep_alive, name="delegation token", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._end()

    def _end(self) -> None:
        try:
            self.expire()
        except TokenFailed as failed:
            # What the tasks did is done, and no error of theirs may be replaced by this one.
            _log.warning("the token %s is good until %s: %s", self.token_id, self.expires, failed)

    def _keep_alive(self) -> None:
        again = self._token.expires_ms < self._token.ends_ms
        life = self._period_ms / 1000
        pause = life * _RENEWED_AFTER
        while again and not self._stop.wait(pause):
            try:
                again, pause = self.renew(), life * _RENEWED_AFTER
            except TokenFailed as failed:
                pause = min(life * _TRIED_AGAIN_AFTER, _LONGEST_PAUSE)
                _log.warning("the token %s expires at %s: %s", self.token_id, self.expires, failed)
        if not again:
            _log.warning(
                "the token %s ends at %s and cannot be renewed: start with another before that",
                self.token_id,
                self.ends,
            )

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id} of {self.owner}, expires {self.expires})"


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
