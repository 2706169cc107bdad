from __future__ import annotations

from docs.tooling import configuration_reference


def test_the_page_is_what_the_declarations_say() -> None:
    assert configuration_reference.PAGE.read_text() == configuration_reference.render(), (
        "run: python docs/tooling/configuration_reference.py"
    )
