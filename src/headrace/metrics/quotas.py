"""What is counted of client quotas. Written by the event loop alone."""

from __future__ import annotations

from typing import Final

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
REQUEST: Final = "request"
CONNECTION: Final = "connection"
CONTROLLER_MUTATION: Final = "controller-mutation"


class QuotaMetrics:
    __slots__ = ("muted", "throttle_ms", "throttles", "told_ms")

    def __init__(self) -> None:
        self.throttles: dict[str, int] = {}
        """Requests and connections that were over a quota, by its type."""
        self.throttle_ms: dict[str, int] = {}
        self.told_ms: dict[str, int] = {}
        """For how long answers told clients to wait, by API."""
        self.muted = 0
        """Connections that are not read now."""

    def throttled(self, quota: str, milliseconds: int) -> None:
        if milliseconds > 0:
            self.throttles[quota] = self.throttles.get(quota, 0) + 1
            self.throttle_ms[quota] = self.throttle_ms.get(quota, 0) + milliseconds

    def told(self, api: str, milliseconds: int) -> None:
        self.told_ms[api] = self.told_ms.get(api, 0) + milliseconds
