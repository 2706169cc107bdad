"""The tests that ordinary builds leave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark import further_forms


@pytest.mark.parametrize("name", sorted(further_forms.FURTHER_FORMS))
def test_what_is_left_out_is_there(name: str) -> None:
    """A test with another name than before would be run, or missed, without anybody's intention."""
    file, _, test = name.partition("::")
    text = (Path(further_forms.__file__).parent / file).read_text()
    assert f"def {test.partition('[')[0]}(" in text
