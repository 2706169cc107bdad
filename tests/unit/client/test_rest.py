"""What a service beside the brokers may make its client do."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.client.rest import Rest, RestRefused
from tests.redirecting import redirecting

_SECRET = "Bearer of-the-console"


def test_credentials_are_not_taken_to_another_service(tmp_path: Path) -> None:
    header = tmp_path / "header"
    header.write_text(_SECRET)
    heard: list[str | None] = []
    with redirecting(heard) as url, pytest.raises(RestRefused, match="which is not followed") as refused:
        Rest(url, authorization=str(header)).get("/subjects")
    assert refused.value.status == 302
    assert heard == []
