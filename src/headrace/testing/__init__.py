"""A real broker for tests: `from headrace.testing import Cluster`, or the fixtures of `pytest_plugin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.testing.cluster import Cluster as Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> object:
    """Late: pytest loads this package with its plugin in every run, also where no test wants a broker."""
    if name == "Cluster":
        from headrace.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
