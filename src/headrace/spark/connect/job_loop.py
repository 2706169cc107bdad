"""A job of our own: it works by itself, and the worker gives it turns and hears how it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import SparkSession

from headrace.connect.api import Connector, Job
from headrace.spark.connect.looping import ConnectorLoop

T = TypeVar("T")


class JobLoop(ConnectorLoop):
    """It is the `Turns` of its job."""

    def work(self, connector: Connector) -> None:
        assert isinstance(connector, Job)
        connector.work(self)

    @property
    def spark(self) -> SparkSession:
        return self.context.spark

    @property
    def ending(self) -> threading.Event:
        return self._end

    def turn(self, work: Callable[[], T]) -> T:
        return self.job(work)
