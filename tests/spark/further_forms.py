"""What every build leaves to `poe pipeline-whole`: the costliest forms of what other tests show too.

Those do so in another table format, on the other broker, without Spark, or under fire. Together these take
nearly as long as all the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

_HERE: Final = Path(__file__).parent
_VARIABLE: Final = "HEADRACE_WHOLE_PIPELINE"

FURTHER_FORMS: Final = frozenset(
    {
        # Iceberg and, for lakes, Parquet do the same in every build; Delta takes three times as long.
        "lake/test_growth.py::test_a_lost_checkpoint_loads_nothing_twice[delta]",
        "lake/test_growth.py::test_columns_are_added_widened_and_left_behind[delta]",
        "lake/test_interrupted.py::test_a_batch_is_cut_off_at_each_moment_and_repeated[delta]",
        "lake/test_interrupted.py::test_a_batch_is_cut_off_at_each_moment_and_repeated[iceberg]",
        "lake/test_upkeep.py::test_dead_letters_are_delivered_once_after_a_fix[delta]",
        "lake/test_upkeep.py::test_maintenance_keeps_every_row_and_what_was_committed[delta]",
        "table/test_model.py::test_a_table_is_what_a_dictionary_would_be[delta]",
        "table/test_topics.py::test_a_rebuild_is_cut_off_anywhere[delta]",
        # connect/test_workers.py kills a worker under the same connector.
        "connect/test_own_connector.py::test_what_init_writes_passes_its_own_test",
        # The fire kills executors of such a cluster under the same engine.
        "connect/test_on_a_cluster.py::test_tasks_run_on_executors",
        # On Headrace in every build.
        "audit/test_audit.py::test_a_clean_pipeline_is_certified_and_late_records_make_new_certificates[kafka]",
        "lake/test_growth.py::test_topics_and_partitions_that_appear_are_loaded[kafka]",
        "table/test_topics.py::test_a_topic_is_kept_up_and_rebuilt[kafka]",
        # sink/test_protocol.py has each place without Spark, the fire has random ones.
        "sink/test_crashes.py::test_a_driver_that_dies_at_every_place",
        "sink/test_crashes.py::test_tasks_that_die_or_fail_are_tried_again",
        # lake/test_backfill.py has each place but for the JVM's own death.
        "lake/test_backfill_crashes.py::test_a_driver_that_dies_at_every_place[delta]",
        "lake/test_backfill_crashes.py::test_a_driver_that_dies_at_every_place[iceberg]",
        "lake/test_backfill_crashes.py::test_a_driver_that_dies_at_every_place[parquet]",
        # The fire kills executors of such a cluster.
        "test_standalone.py::test_a_job_runs_on_executors_of_both_workers_and_outlives_one",
        # test_secured.py has these with a password, in one process.
        "test_secured_cluster.py::test_streams_lake_table_and_audit_with_a_token[headrace]",
        "test_secured_cluster.py::test_streams_lake_table_and_audit_with_a_token[kafka]",
        # On Headrace in every build.
        "test_secured_cluster.py::test_workers_read_and_write_with_a_token_and_know_nothing_else[kafka]",
        # Rare cases. Most of what is decided there, unit tests show without Spark.
        "audit/test_audit.py::test_a_lake_that_is_behind_is_no_difference",
        "audit/test_audit.py::test_a_lost_event_is_missed_and_a_doubled_one_counts_once",
        "audit/test_audit.py::test_a_producer_that_dies_leaves_its_windows_incomplete",
        "audit/test_mirror.py::test_windows_are_certified_and_a_lost_or_doubled_record_is_found",
        "audit/test_lakes.py::test_between_the_two_commits_of_a_batch_nothing_is_lost",
        "table/test_anew.py::test_a_rebuild_after_one_that_was_cut_off_has_all_dead_letters",
        "table/test_anew.py::test_an_index_that_changed_is_made_anew_at_the_step_that_it_has",
        "table/test_steps.py::test_a_checkpoint_that_came_back_from_a_copy_loses_no_record",
        "table/test_upkeep.py::test_a_table_of_iceberg_knows_its_step_after_all_snapshots_expired",
        "table/test_upkeep.py::test_a_table_that_cannot_be_maintained",
        "table/test_views.py::test_a_view_that_overflows_is_left_behind_until_it_can_be_computed",
    }
)


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Skips them, unless all are wanted."""
    if os.environ.get(_VARIABLE):
        return
    for item in items:
        inside = item.path.is_relative_to(_HERE)
        if inside and f"{item.path.relative_to(_HERE)}::{item.name}" in FURTHER_FORMS:
            item.add_marker(pytest.mark.skip(reason=f"a further form: {_VARIABLE}=1"))
