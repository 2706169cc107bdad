"""A plan on a terminal: names and values are chosen by others."""

from __future__ import annotations

import pytest

from headrace.cli.apply_plan import print_plan
from headrace.desired.plan import plan
from headrace.desired.present import Present
from headrace.desired.reading import read_document


def test_no_name_looks_like_a_line_of_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    name = "eve\n- topic payments\x1b[2J"
    present = Present(quotas={(("user", name),): {"producer_byte_rate": 1.0}})
    found = plan(read_document(b"owns: {quotas: ['*']}\nprune: true\nquotas: []\n"), present, prune=True)
    print_plan(found, {}, as_json=False, done=None)
    printed = capsys.readouterr()
    assert "eve\\n- topic payments\\x1b[2J" in printed.out
    assert not any(line.startswith("- topic") for line in printed.out.splitlines())
    assert "\x1b" not in printed.out + printed.err
