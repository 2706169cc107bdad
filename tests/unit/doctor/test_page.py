from __future__ import annotations

from docs.tooling import doctor_checks


def test_the_table_is_what_the_checks_say() -> None:
    assert doctor_checks.PAGE.read_text() == doctor_checks.render(), "run: python docs/tooling/doctor_checks.py"


def test_the_example_counts_the_checks() -> None:
    assert f"1 finding; {len(doctor_checks.CHECKS)} checks" in doctor_checks.PAGE.read_text()
