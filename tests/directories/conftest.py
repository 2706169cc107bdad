"""Each test with a directory and with a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.directories.object_store import ObjectStore, running_object_store


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    with running_object_store() as store:
        yield store


@pytest.fixture(params=["directory", "bucket"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Where a connector's files are."""
    if request.param == "directory":
        return {"location": str(tmp_path / "files")}
    store: ObjectStore = request.getfixturevalue("object_store")
    return {"location": store.location(), **store.settings}
