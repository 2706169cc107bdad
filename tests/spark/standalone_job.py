"""A small job for a cluster: four tasks, each of which says in a topic what it added up, and where.

`python -m tests.spark.standalone_job JSON`; while the file `held` is there, its tasks wait.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headrace.spark import session

ROWS = 1000
TASKS = 4


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = session("job", master=given["master"], warehouse=given["warehouse"], extra=given["settings"])
    held = given["held"]

    def work(index: int, rows: Iterable[Any]) -> Iterator[tuple[str, str]]:
        total = sum(row.id for row in rows)
        while Path(held).exists():
            time.sleep(0.1)
        yield str(index), json.dumps({"process": os.getpid(), "total": total})

    rows = spark.range(0, ROWS, 1, TASKS).rdd.mapPartitionsWithIndex(work).toDF("key string, value string")
    options = {"kafka.bootstrap.servers": given["bootstrap"], "topic": given["topic"]}
    rows.write.format("kafka").options(**options).save()
    spark.stop()


if __name__ == "__main__":
    main()
