"""One field for all rounds of a worker: to start it costs as much as a round."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.fire.field import Field


@pytest.fixture(scope="session")
def standing_field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with Field(tmp_path_factory.mktemp("field")) as field:
        yield field


@pytest.fixture
def field(standing_field: Field) -> Field:
    standing_field.calm()
    return standing_field
