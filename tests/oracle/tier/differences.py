"""Every known difference between the two histories, each with its reason."""

from __future__ import annotations

from tests.oracle.differences import ABSENT, Difference

_FETCHED = r"responses\[.*\]\.partitions\[0\]\."
_LISTED = r"topics\[.*\]\.partitions\[0\]\."

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "Fetch",
        "a limit of no bytes, in the history",
        "Kafka answers with nothing, but with one batch where the same records are on its disk. Headrace "
        "answers with one batch from both.",
        r"history, 0 bytes of the (partition|answer) v12",
        _FETCHED + r"records.*",
        kafka=ABSENT,
    ),
    Difference(
        "Fetch",
        "after an epoch that the history does not have",
        "Kafka sends the records of its store all the same, and none where they are on its disk. Headrace "
        "sends none from both.",
        r"history after epoch 4 v12",
        _FETCHED + r"records.*",
        headrace=ABSENT,
    ),
    Difference(
        "Fetch",
        "for a replica that the partition does not have",
        "Only brokers ask for replicas. Headrace compares the epoch of the broker first.",
        r"history for nobody's replica v12",
        _FETCHED + r"(error_code|current_leader\..*)",
    ),
    Difference(
        "Fetch",
        "aborted transactions of an unknown topic id",
        "None, and an empty list: both say that there are none.",
        r"again: by its old id.* v13",
        _FETCHED + r"aborted_transactions.*",
    ),
    Difference(
        "ListOffsets",
        "the last offset in the store, after all that was there was deleted",
        "Kafka goes on naming it. Headrace says that nothing is there.",
        r"history after (26|99|-1) was deleted: end -5 v10",
        _LISTED + "offset",
        kafka="23",
        headrace="-1",
    ),
    Difference(
        "ListOffsets",
        "the largest timestamp after everything was deleted",
        "Kafka names the youngest of the deleted records. Headrace says that there is none.",
        r"history after -1 was deleted: end -3 v10",
        _LISTED + "(offset|timestamp|leader_epoch)",
        headrace="-1",
    ),
    Difference(
        "ListOffsets",
        "the epoch of the start of an empty log",
        "No record, no epoch.",
        r"again made again: end -(2|4) v10",
        _LISTED + "leader_epoch",
        kafka="0",
        headrace="-1",
    ),
    Difference(
        "Fetch",
        "times of markers",
        "Each broker writes them by its own clock.",
        r"transactions from \d+ at level \d v12|traded as it is: end -3 v10",
        r".*(base_timestamp|max_timestamp|\.timestamp|record\[(3|7|11|15|19|23)\])",
        kafka=r"(?!<absent>).*",
        headrace=r"(?!<absent>).*",
    ),
)

OF_A_NEWCOMER: tuple[Difference, ...] = (
    Difference(
        "ListOffsets",
        "the largest timestamp, if it lies in the history",
        "Kafka looks into what is on the disk. Headrace looks into the history too.",
        r"moved after move \d: end -3 v\d+",
        _LISTED + "(offset|timestamp|leader_epoch)",
    ),
    Difference(
        "Fetch",
        "an epoch newer than the log's is no error",
        "As without a history: Kafka answers OFFSET_OUT_OF_RANGE, Headrace serves the offset.",
        r"after move \d: read after leadership [23] v12",
        _FETCHED + "(error_code|high_watermark|last_stable_offset|log_start_offset)",
    ),
    Difference(
        "DescribeProducers",
        "who wrote before the newcomer came",
        "Kafka's newcomer knows only the producers of records that it has copied itself. Headrace's has read "
        "the producers from the store.",
        r"after move \d: producers v0",
        r"topics\[moved\]\.partitions\[0\]\.active_producers(\.#|\[<(quiet|trader)>\]\..*)",
        kafka="1|<absent>",
    ),
    Difference(
        "Produce",
        "a batch of such a producer, sent again",
        "Kafka's newcomer appends it a second time. Headrace's knows it.",
        r"a producer that was quiet: its last one again v11",
        r"responses\[moved\]\.partition_responses\[0\]\.base_offset",
    ),
    Difference(
        "Produce",
        "no append time for a duplicate",
        "As without a history: -1, as for every batch of such a topic.",
        r"after move \d: the last one again v11",
        r"responses\[moved\]\.partition_responses\[0\]\.log_append_time_ms",
        headrace="-1",
    ),
    Difference(
        "Produce",
        "no log start offset beside an error",
        "As without a history.",
        r"after move \d: one too many left out v11",
        r"responses\[moved\]\.partition_responses\[0\]\.log_start_offset",
        kafka="0",
        headrace="-1",
    ),
)
