from __future__ import annotations

from docs.tooling import doctor_checks

from headrace.doctor.checks.registry import CHECKS


def test_the_table_is_what_the_checks_say() -> None:
    assert doctor_checks.PAGE.read_text() == doctor_checks.render(), (
        "run: python docs/tooling/doctor_checks.py"
    )


def test_the_example_counts_the_checks() -> None:
    assert f"1 finding; {len(CHECKS)} checks" in doctor_checks.PAGE.read_text()
