"""What `headrace.spark` offers by name, and that looking at it costs nobody a Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headrace.spark


def test_every_name_is_found() -> None:
    for name in headrace.spark.__all__:
        assert callable(getattr(headrace.spark, name)), name
        assert name in dir(headrace.spark)


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'sesion'"):
        headrace.spark.sesion  # noqa: B018 - looking is the test


def test_the_package_alone_imports_no_spark() -> None:
    program = "import sys, headrace.spark, headrace.spark.jars; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
