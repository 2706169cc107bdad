from __future__ import annotations

import pytest

from headrace.client.errors import ClientFailure
from headrace.client.start import Start, StartKind, parse_start


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("beginning", Start(StartKind.EARLIEST)),
        ("end", Start(StartKind.LATEST)),
        ("42", Start(StartKind.OFFSET, 42)),
        ("-10", Start(StartKind.BEFORE_END, 10)),
        ("@1700000000000", Start(StartKind.TIMESTAMP, 1_700_000_000_000)),
        ("@2023-11-14T22:13:20", Start(StartKind.TIMESTAMP, 1_700_000_000_000)),
        ("@2023-11-14T23:13:20+01:00", Start(StartKind.TIMESTAMP, 1_700_000_000_000)),
    ],
)
def test_places_in_a_log(text: str, start: Start) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "x", "1.5", "--3", "@", "@yesterday", "stored"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ClientFailure):
        parse_start(text)
