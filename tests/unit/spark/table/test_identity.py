"""Another topic under the old name asks for a rebuild."""

from __future__ import annotations

import pytest

from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.table.config import TableSpec
from headrace.spark.table.identity import check_topic, is_another
from headrace.spark.table.plan import NeedsRebuild

SPEC = TableSpec("latest", "orders", Decoding(Format.BYTES), "dead")


def test_another_id_is_another_topic() -> None:
    with pytest.raises(NeedsRebuild, match=r"topic orders was deleted and made anew.*rebuild latest`"):
        check_topic(SPEC, "old", "new")
    assert is_another("old", "new")


@pytest.mark.parametrize(("known", "found"), [("same", "same"), (None, "new"), ("old", None), (None, None)])
def test_what_is_not_known_is_not_another(known: str | None, found: str | None) -> None:
    check_topic(SPEC, known, found)
    assert not is_another(known, found)
