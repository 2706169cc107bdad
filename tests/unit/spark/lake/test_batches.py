"""What was done is kept, and counted by offsets."""

from __future__ import annotations

from pathlib import Path

from headrace.spark.lake import batches
from headrace.spark.lake.batches import Batch, Done
from headrace.spark.lake.files import LocalFiles


def test_only_news_is_kept_and_only_so_much_of_it(tmp_path: Path) -> None:
    done = Done("t", "table")
    assert done.rate() is None
    assert done.add(Batch(0, 100, 0, 500))
    assert not done.add(Batch(0, 100, 0, 500))
    assert not done.add(Batch(1, 0, 0, 10))
    assert done.add(Batch(1, 300, 1000, 1500))
    assert done.rate() == 200.0
    for number in range(2, 50):
        done.add(Batch(number, 1, 0, 1))
    assert len(done.batches) == 20
    files = LocalFiles()
    batches.store(files, f"file://{tmp_path}/t", done)
    assert batches.fetch(files, f"file://{tmp_path}/t") == done
    assert batches.fetch(files, f"file://{tmp_path}/u") is None
