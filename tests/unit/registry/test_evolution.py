"""The table of schema evolution, put to the compatibility rules directly."""

from __future__ import annotations

import pytest

from headrace.registry.content import Content, SchemaType
from headrace.registry.formats import Formats
from headrace.registry.state import State
from tests.registry.evolution.case import Case
from tests.registry.evolution_cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_verdicts(case: Case) -> None:
    formats, state = Formats(), State()
    old = formats.parse(state, Content(SchemaType(case.type), case.old))
    new = formats.parse(state, Content(SchemaType(case.type), case.new))
    backward, forward = new.cannot_read(old), old.cannot_read(new)
    assert (not backward, not forward) == (case.backward, case.forward), (backward, forward)


def test_names_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
