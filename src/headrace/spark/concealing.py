"""Spark shows the options of sources and sinks in plans, in its UI and in its event log. Here not those of
security.

Of itself it hides what is called a password, a secret or a token; a private key is called
`kafka.ssl.keystore.key`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

SETTING: Final = "spark.sql.redaction.options.regex"
OURS: Final = "kafka[.](?:ssl|sasl)[.]"
_SPARKS_OWN: Final = "(?i)url"
WHOLE: Final = f"{_SPARKS_OWN}|{OURS}"


def conceal_options(spark: SparkSession) -> None:
    """In this session, and beside what it conceals already."""
    theirs = spark.conf.get(SETTING, _SPARKS_OWN) or _SPARKS_OWN
    if OURS not in theirs:
        spark.conf.set(SETTING, f"{theirs}|{OURS}")
