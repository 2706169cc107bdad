from __future__ import annotations

import pytest

from headrace.spark.requirements import unmet, wanted_packages


def test_the_distribution_names_the_packages() -> None:
    wanted = wanted_packages()
    assert set(wanted) == {"fastavro", "pandas", "protobuf", "pyarrow", "pyspark"}
    assert wanted["pyspark"].startswith("==")


@pytest.mark.parametrize(
    ("version", "demand", "broken"),
    [
        ("4.1.3", "==4.1.3", ""),
        ("4.1.2", "==4.1.3", "==4.1.3"),
        ("4.1.3.dev1", "==4.1.3", ""),
        ("2.2", "<3,>=2.2", ""),
        ("2.1.9", "<3,>=2.2", ">=2.2"),
        ("3.0.0", "<3,>=2.2", "<3"),
        ("3.0.0rc1", "<3,>=2.2", "<3"),
        ("10.0", ">=9.1", ""),
        ("22", ">=22.0.0", ""),
        ("22.0.0", "!=22", "!=22"),
        ("1.0", "", ""),
    ],
)
def test_a_version_meets_a_demand_or_the_clause_is_named(version: str, demand: str, broken: str) -> None:
    assert unmet(version, demand) == broken


def test_a_demand_that_cannot_be_read_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="~=2"):
        unmet("2.2", "~=2.2")
