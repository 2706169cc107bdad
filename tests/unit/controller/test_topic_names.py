from __future__ import annotations

import pytest

from headrace.controller.topic_names import check_topic_name
from headrace.core.errors import InvalidTopic


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets", "-"])
def test_legal(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "é", "a\n", "a:b", "日本"])
def test_illegal(name: str) -> None:
    with pytest.raises(InvalidTopic):
        check_topic_name(name)
