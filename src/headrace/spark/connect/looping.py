"""One connector as a thread: works until it is told to end. When it fails it tries again, with back-off."""

from __future__ import annotations

import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from datetime import UTC, datetime
from typing import Final, TypeVar
from uuid import uuid4

from headrace.connect.api import Connector, GiveUp
from headrace.connect.config import Config, config_of
from headrace.connect.plugins import all_settings
from headrace.connect.redaction import SecretMissing, concealed, resolved, secrets_of
from headrace.connect.runner import Condition, Report, Run
from headrace.connect.settings import BadSetting
from headrace.core.errors import HeadraceError
from headrace.spark.connect.context import Context
from headrace.spark.connect.task_failures import of_connector

T = TypeVar("T")
_FIRST_DELAY: Final = 1.0
_LONGEST_TRACE: Final = 8_000
_GRACE_SECONDS: Final = 5.0
"""So long a job that is under way may take after its connector was stopped; then it is cancelled."""


class Ended(Exception):
    """The connector was told to end."""


class ConnectorLoop(ABC):
    def __init__(self, run: Run, report: Callable[[Report], None], context: Context) -> None:
        self.name = run.name
        self.run = run
        self.context = context
        self._report = report
        self._tag = f"headrace-connect-{uuid4().hex}"
        self._end = threading.Event()
        self._condition: Condition | None = None
        self._topics: frozenset[str] = frozenset()
        self._still: str | None = None
        self._tasks_to_say: tuple[Mapping[str, str], ...] | None = None
        self._secrets: frozenset[str] = frozenset()
        self._failing_since: float | None = None
        self._attempts = 0
        self._thread = threading.Thread(target=self._live, name=f"headrace-connect {self.name}", daemon=True)
        self._on_end: list[Callable[[], None]] = []
        self._ending = threading.Lock()
        self._ended = False

    def start(self) -> None:
        self._thread.start()

    def end(self, on_end: Callable[[], None] | None = None) -> None:
        """Asks it to end; `on_end` is called, from any thread, when it has."""
        with self._ending:
            if on_end is not None and not self._ended:
                self._on_end.append(on_end)
                on_end = None
            self._end.set()
        if on_end is not None:
            on_end()

    def cancel(self) -> None:
        """Its job ends now; what it has not decided is aborted."""
        self._end.set()
        self.context.cancel(self._tag)

    @abstractmethod
    def work(self, connector: Connector) -> None:
        """Until `Ended`, which `wait` and `job` raise. Whatever else it raises is a failure."""

    # --- for `work` -----------------------------------------------------------------------------------

    def begun(self, topics: frozenset[str], still: str | None = None) -> None:
        """It is at work on these. One that has failed must have done something to be called well again."""
        if self._failing_since is None:
            self.alive(topics, still)

    def alive(self, topics: frozenset[str] = frozenset(), still: str | None = None) -> None:
        """Something was done, or nothing was to be done. `still`: what stands still meanwhile."""
        self._failing_since, self._attempts = None, 0
        new = topics - self._topics
        if self._condition is not Condition.RUNNING or new or still != self._still:
            self._topics |= topics
            self._still = still
            self._say(Condition.RUNNING, None if still is None else self._shown(still))

    def wait(self, seconds: float) -> None:
        if self._end.wait(seconds):
            raise Ended

    def check(self) -> None:
        if self._end.is_set():
            raise Ended

    def job(self, work: Callable[[], T]) -> T:
        """In its turn, since only some may run Spark jobs at a time."""

        def unless_ended() -> T:
            self.check()
            return work()

        future = self.context.job(self._tag, unless_ended)
        while not self._end.is_set():
            if wait([future], timeout=0.5).done:
                try:
                    return future.result()
                except Exception as error:
                    if (told := of_connector(error)) is not None:
                        raise told from None
                    raise
        if future.cancel():
            raise Ended
        timer = threading.Timer(_GRACE_SECONDS, self.cancel)
        timer.start()
        try:
            return future.result()
        except Exception:
            raise Ended from None  # perhaps because it was cancelled: what was not decided is not there
        finally:
            timer.cancel()

    # --- the thread -----------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            while not self._end.is_set():
                try:
                    self._work_once()
                except Ended:
                    break
                except Exception as error:
                    if not self._failed(error):
                        self._end.wait()
        finally:
            with self._ending:
                self._ended = True
                called = list(self._on_end)
            for each in called:
                each()

    def _work_once(self) -> None:
        config = self._config()
        connector = self.run.described.connector(config)
        tasks = self._tasks(connector, config)
        try:
            self._condition = None
            self._tasks_to_say = tasks
            self.work(connector)
        finally:
            connector.stop()

    def _config(self) -> Config:
        connector = self.run.described.connector
        settings = all_settings(connector)
        try:
            given, secrets = resolved(self.run.properties)
            self._secrets = secrets | secrets_of(given, settings)
            config = config_of(self.name, settings, given, self.context.kafka)
        except (BadSetting, SecretMissing) as error:
            raise GiveUp(str(error)) from None
        if (missing := connector.missing()) is not None:
            raise GiveUp(missing)
        return config

    def _tasks(self, connector: Connector, config: Config) -> tuple[Mapping[str, str], ...]:
        """As the connector was configured: what stands for a secret stays that."""
        count = max(0, min(connector.tasks(config["tasks.max"]), config["tasks.max"]))
        task = {**self.run.properties, "task.class": self.run.described.name}
        return tuple(task for _ in range(count))

    def _failed(self, error: Exception) -> bool:
        """Says so. Returns after a while if it is to be tried again, False if it is not."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        self._attempts += 1
        limit = self._setting("errors.retry.timeout", -1)
        delay = min(
            _FIRST_DELAY * 2 ** (self._attempts - 1),
            self._setting("errors.retry.delay.max.ms", 60_000) / 1000,
        )
        is_over = limit >= 0 and (now + delay - self._failing_since) * 1000 > limit
        if isinstance(error, GiveUp) or is_over:
            self._say(Condition.FAILED, self._trace(error))
            return False
        at = datetime.fromtimestamp(time.time() + delay, UTC).strftime("%H:%M:%S UTC")
        self._say(
            Condition.RETRYING, f"{self._trace(error)}\nattempt {self._attempts} failed; the next is at {at}"
        )
        self._end.wait(delay)
        return True

    def _setting(self, name: str, default: int) -> int:
        try:
            return int(self.run.properties.get(name, default))
        except ValueError:
            return default

    def _trace(self, error: Exception) -> str:
        if isinstance(error, HeadraceError):
            text = f"{type(error).__name__}: {error}"
        else:
            text = "".join(traceback.format_exception(error))
        return self._shown(text)

    def _shown(self, text: str) -> str:
        text = concealed(self.context.kafka.conceal(text), self._secrets)
        return text if len(text) <= _LONGEST_TRACE else f"{text[:_LONGEST_TRACE]}\n..."

    def _say(self, condition: Condition, trace: str | None = None) -> None:
        self._condition = condition
        self._report(Report(self.name, condition, trace, self._tasks_to_say, self._topics))
        self._tasks_to_say = None
