"""Every known difference between Headrace's answers and Apache Kafka 4.3.1's, each with its reason.

A step, a path and, where given, the two values are regular expressions that must match whole. The comparison
fails on a difference that is not here, and on an entry that no longer occurs. `docs/compatibility.md` shows
this list to readers; `python -m tests.oracle.document` writes it there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ABSENT = "<absent>"


class Difference(NamedTuple):
    api: str
    title: str
    reason: str
    step: str
    path: str
    kafka: str = r"(?s).*"
    headrace: str = r"(?s).*"

    def explains(self, step: str, path: str, kafka: object, headrace: object) -> bool:
        pairs = (
            (self.step, step),
            (self.path, path),
            (self.kafka, str(kafka)),
            (self.headrace, str(headrace)),
        )
        return all(re.fullmatch(pattern, text) is not None for pattern, text in pairs)


_PARTITION = r"responses\[[^]]*\]\.partition_responses\[\d+\]\."

_FEATURES_TO_COME = (
    Difference(
        "ApiVersions",
        "fewer APIs",
        "Share groups, groups of Kafka Streams and telemetry are not there yet. An API is advertised when it "
        "works. What belongs to a KRaft quorum is never advertised.",
        r"versions v\d",
        r"api_keys\[\d+\]\..*",
        headrace=ABSENT,
    ),
    Difference(
        "ApiVersions",
        "their number",
        "It follows from the entry before.",
        r"versions v\d",
        r"api_keys\.#",
    ),
    Difference(
        "ApiVersions",
        "fewer features",
        "A feature is finalised when all that it promises works; clients switch their behaviour on it. The "
        "metadata version is the one whose records Headrace writes. The epoch is an offset in each "
        "broker's own "
        "metadata log.",
        r"versions v\d",
        r"(supported|finalized)_features(\.|\[|_epoch).*",
    ),
)

_DELIBERATE = (
    Difference(
        "ApiVersions",
        "InitProducerId 6 is offered",
        "Kafka serves it only where unstable versions are enabled. With it a producer may ask for a "
        "transaction that never times out (KIP-939), which `transaction.two.phase.commit.enable` has to "
        "allow.",
        r"versions v\d",
        r"api_keys\[22\]\.max_version",
        kafka="5",
        headrace="6",
    ),
    Difference(
        "Metadata",
        "an auto-created topic is in the first answer",
        "Kafka answers UNKNOWN_TOPIC_OR_PARTITION, creates the topic, and the client asks again. "
        "Headrace creates "
        "first and answers then, so that nobody waits for a retry.",
        r"(.*: )?metadata that creates v\d+",
        r"topics\[(metadata-made-\d+|(pre|shut)-auto-.*)\]\..*",
        kafka=r"(?!29).*",
        headrace=r"(?!29).*",
    ),
    Difference(
        "Produce",
        "records that are none have a code",
        "Kafka decodes every record and fails with UNKNOWN_SERVER_ERROR on these. Headrace answers "
        "INVALID_RECORD. It reads the first record, the beginning of what is compressed, and whether so many "
        "records can be in so many bytes. The rest is believed, unless the settings of the topic need it.",
        r"(gzip that is none|records that are none) v\d+",
        _PARTITION + "error_code",
        kafka="-1",
        headrace="87",
    ),
    Difference(
        "Produce",
        "nothing may follow the batch",
        "Kafka ignores bytes that are too few for another batch; Headrace refuses the request with "
        "INVALID_RECORD. "
        "No client sends such bytes.",
        r"bytes after the batch v\d+",
        _PARTITION + "(base_offset|error_code|log_start_offset)",
    ),
    Difference(
        "Produce",
        "a request without records is answered",
        "Kafka's handler fails and never answers; the client waits for its timeout. Headrace answers "
        "INVALID_RECORD.",
        r"no records v\d+",
        r".*",
    ),
    Difference(
        "Produce",
        "unknown compressions have a code",
        "Kafka answers UNKNOWN_SERVER_ERROR for compression types 5 to 7, Headrace INVALID_RECORD.",
        r"compression [57] v\d+",
        _PARTITION + "error_code",
        kafka="-1",
        headrace="87",
    ),
    Difference(
        "Produce",
        "a client may not claim LogAppendTime",
        "Kafka clears the mark and stores the batch; Headrace refuses it with INVALID_TIMESTAMP, "
        "because it does not "
        "rewrite batches. No client sets the mark.",
        r"log append time claimed by the client v\d+",
        _PARTITION + "(base_offset|error_code)",
    ),
    Difference(
        "Produce",
        "no log start offset beside an error",
        "Kafka adds the log start offset to some errors of a batch. Clients read it only beside success.",
        r".* v\d+",
        _PARTITION + "log_start_offset",
        kafka="0",
        headrace="-1",
    ),
    Difference(
        "Produce",
        "no append time for a duplicate",
        "Kafka tells when the first copy was written, even where records keep their own time. Headrace "
        "says -1, as for every batch of such a topic, and clients keep the time that they gave.",
        r".*duplicate v\d+",
        _PARTITION + "log_append_time_ms",
        headrace="-1",
    ),
    Difference(
        "Produce",
        "another code for a sequence without an epoch",
        "Kafka compares epoch -1 with the producer's and answers INVALID_PRODUCER_EPOCH; Headrace answers "
        "INVALID_RECORD. No client sends a sequence without an epoch.",
        r"negative epoch v\d+",
        _PARTITION + "error_code",
        kafka="47",
        headrace="87",
    ),
    Difference(
        "Produce",
        "bad records are not named one by one",
        "Kafka lists the bad records of a refused batch. Headrace refuses the batch with the same code "
        "and says in "
        "the message what is wrong.",
        r"(no key in a compacted topic|too old|too far ahead.*) v\d+",
        _PARTITION + r"record_errors(\.#|\[\d+\]\..*)",
    ),
    Difference(
        "Fetch",
        "null instead of an empty list beside an error",
        "A partition that has an error has no aborted transactions: null says so, as for a reader of "
        "uncommitted "
        "records.",
        r".*unknown.* v\d+|zero topic id v\d+|.*: .*: (fetch|begin|go on) .* v\d+",
        r".*\.aborted_transactions(\.#)?",
    ),
    Difference(
        "OffsetFetch",
        "a group asked for twice is answered once",
        "Kafka answers each mention. Headrace answers once, with what all of the mentions ask for, as in "
        "every request that mentions a thing twice. No client does.",
        r"fetch one group twice v\d+",
        r"groups.*",
    ),
    Difference(
        "Fetch",
        "an epoch newer than the log's is no error",
        "Kafka answers OFFSET_OUT_OF_RANGE when a reader claims to have read an epoch that has not "
        "begun. Headrace "
        "serves the offset; the next fetch with a current epoch finds the truth.",
        r"last fetched epoch 3 v\d+",
        r"responses\[fetch\]\.partitions\[0\]\..*",
    ),
    Difference(
        "ListOffsets",
        "no epoch for the start of an empty partition",
        "Kafka knows the current leader's epoch although nothing has been written in it; Headrace "
        "learns epochs from "
        "what is in the log.",
        r"offset of (earliest|special -4) v\d+",
        r"topics\[fetch\]\.partitions\[2\]\.leader_epoch",
        kafka="0",
        headrace="-1",
    ),
    Difference(
        "ElectLeaders",
        "an election of all that changes nothing is an empty list",
        "Kafka names every topic with an empty list of partitions. The tools print neither.",
        r"elect all v\d+",
        r"replica_election_results.*",
    ),
    Difference(
        "IncrementalAlterConfigs",
        "an unknown operation has a code",
        "Kafka answers UNKNOWN_SERVER_ERROR, Headrace INVALID_REQUEST.",
        r"change by an unknown operation v\d+",
        r"responses\[.*\]\.error_code",
        kafka="-1",
        headrace="42",
    ),
    Difference(
        "ConsumerGroupHeartbeat",
        "a pattern is resolved at once",
        "Both look up the topics of a pattern on another thread. Kafka answers before, so that its first "
        "answer names none and the member waits for a heartbeat. Headrace answers when they are known.",
        r"patterns: m1 joins v1",
        r"assignment\.topic_partitions.*|member_epoch",
    ),
    Difference(
        "ConsumerGroupHeartbeat",
        "an assignment is said until it is confirmed",
        "Kafka says it once. librdkafka repeats a heartbeat that was not answered in time as it was, so a "
        "member whose answer was lost keeps what others wait for, or leaves to nobody what it was given. "
        "Headrace says it again until the member comes with the next epoch or names what it owns.",
        r"pair: m1 still has all v1|fencing: m1 is one behind v1",
        r"assignment.*",
    ),
)

_CONFIGURATION = (
    Difference(
        "CreateTopics, DescribeConfigs",
        "min.insync.replicas is an ordinary default",
        "Kafka writes it as a dynamic default of the cluster when eligible leader replicas are switched "
        "on. In Headrace the controller of a cluster does that; a lone broker goes by its file until "
        "somebody sets it.",
        r".* v\d+",
        r".*configs\[min\.insync\.replicas\]\..*|results\[4/\]\.configs\.#",
    ),
    Difference(
        "DescribeConfigs",
        "fewer configs of groups",
        "Those of share groups and of groups of Kafka Streams come with these groups.",
        r"describe .*group.* v\d",
        r"results\[32/[^]]*\]\.configs(\.#|\[(share|streams)\..*)",
    ),
    Difference(
        "ListConfigResources",
        "no loggers of brokers",
        "Kafka lists each broker once more, for the levels of its loggers. Headrace has no such configs.",
        r"resources of \[8?\] v1",
        r"config_resources(\.#|\[8/\d+\]\..*)",
    ),
    Difference(
        "UpdateFeatures",
        "transaction.version cannot be lowered",
        "Producers that have begun with 2 trust that their epoch is raised at each end of a transaction, and "
        "number their batches anew. Without it new batches would look like old ones, and be dropped.",
        r"features: lower, only to see v\d",
        r"error_code",
        kafka="0",
        headrace="95",
    ),
    Difference(
        "DescribeConfigs",
        "another set of broker properties",
        "Headrace has the properties of what it does, and some names of older Kafka releases that it "
        "still takes. "
        "Properties of KRaft, of share groups, of clients with OAuth and of tiered storage are not there yet "
        "or never will be.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[.*\]\..*",
        headrace=ABSENT,
    ),
    Difference(
        "DescribeConfigs",
        "names that Kafka 4 has dropped, and our own",
        "Properties of older releases are accepted, so that an old server.properties starts; the "
        "headrace.* ones have "
        "no counterpart.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[.*\]\..*",
        kafka=ABSENT,
    ),
    Difference(
        "DescribeConfigs",
        "their number",
        "It follows from the two entries before.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\.#",
    ),
    Difference(
        "DescribeConfigs",
        "listeners and roles of this test",
        "Apache Kafka has to be given a controller listener and roles; a Headrace broker needs none. "
        "Its listeners "
        "cannot be changed while it runs.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[(advertised\.listeners|controller\.listener\.names"
        r"|listener\.security\.protocol\.map|listeners|process\.roles)\]\..*",
    ),
    Difference(
        "DescribeConfigs",
        "socket buffers are left to the system",
        "Kafka sets 100 KB. Linux sizes buffers by itself when nobody sets them, which is better for "
        "large batches; -1 means the same in Kafka.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[socket\.(send|receive)\.buffer\.bytes\]\..*",
        kafka="102400",
        headrace="-1",
    ),
    Difference(
        "DescribeConfigs",
        "the buffers between brokers too",
        "Kafka sets 64 KB for followers. A fixed size cost CPU for each megabyte that is copied.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[replica\.socket\.receive\.buffer\.bytes\]\..*",
        kafka="65536",
        headrace="-1",
    ),
    Difference(
        "DescribeConfigs",
        "properties of protection need a restart",
        "In Kafka they can be altered while a broker runs. Here certificates are reloaded by themselves when "
        "their files change, which is what that was for.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[(ssl|sasl)\..*\]\.read_only",
        kafka="False",
        headrace="True",
    ),
    Difference(
        "DescribeConfigs",
        "no mechanism of SASL is on by default",
        "Kafka's default is GSSAPI, which needs a keytab. A listener with SASL says which it wants.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[sasl\.(enabled\.mechanisms|mechanism\.(controller|inter\.broker)\.protocol)\]"
        r"\.(value|synonyms.*)",
    ),
    Difference(
        "DescribeConfigs",
        "Kerberos has a service name by default",
        "Kafka has none, and does not start with GSSAPI until somebody says one, which is kafka.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[sasl\.kerberos\.service\.name\]\.(value|synonyms.*)",
    ),
    Difference(
        "DescribeConfigs",
        "strangers may send less",
        "64 KiB before a client has authenticated, where Kafka takes 512: tokens are far smaller.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[sasl\.server\.max\.receive\.size\]\..*",
        kafka="524288",
        headrace="65536",
    ),
    Difference(
        "DescribeConfigs",
        "another default directory",
        "The default of log.dir names the product. Both are under /tmp, and both are for trying things out.",
        r"describe the broker v\d+",
        r"results\[4/1\]\.configs\[log\.dir\]\..*",
    ),
)

DIFFERENCES: tuple[Difference, ...] = (*_FEATURES_TO_COME, *_DELIBERATE, *_CONFIGURATION)
