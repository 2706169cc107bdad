"""What is counted of denials. Written by the event loop alone."""

from __future__ import annotations

By = tuple[str, str]
"""Operation and resource type, by Kafka's names: there are not many, whatever clients ask for."""


class AuthorizerMetrics:
    __slots__ = ("denied", "shadow_denied")

    def __init__(self) -> None:
        self.denied: dict[By, int] = {}
        self.shadow_denied: dict[By, int] = {}
        """What shadow mode allowed although the rules deny it."""
