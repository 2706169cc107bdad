"""What lake.toml may say, and how it is told what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.cli.lake_init import _TEMPLATE
from headrace.spark.decoding.formats import Format
from headrace.spark.lake.config import LakeConfig, LakeConfigError, load, parse

_KAFKA = '[kafka]\n"bootstrap.servers" = "a:1"\n'
_LAKE = f'{_KAFKA}[lake]\nlocation = "/data"\n'
_TOPIC = '[[topics]]\nname = "orders"\n'


def read(text: str) -> LakeConfig:
    return parse(text, Path("/somewhere/lake.toml"))


def test_little_is_enough() -> None:
    config = read(_LAKE + _TOPIC)
    assert config.format == "delta"
    assert config.location == "file:///data"
    assert config.state == "file:///data/_headrace"
    assert config.topics[0].format is Format.BYTES
    assert config.maintenance is None


def test_the_template_is_a_configuration() -> None:
    config = read(_TEMPLATE.format(name="lake.toml"))
    assert config.location == "file:///somewhere/lake"
    assert config.maintenance is not None
    assert config.maintenance.keep_seconds == 7 * 86_400


@pytest.mark.parametrize(
    ("heading", "needed"),
    [("[lake]", 'location = "x"'), ("[[topics]]", 'name = "a"'), ("[maintenance]", 'every = "1h"')],
)
def test_the_template_has_every_key(heading: str, needed: str) -> None:
    others = {"[lake]": _KAFKA + _TOPIC, "[[topics]]": _LAKE, "[maintenance]": _LAKE + _TOPIC}
    with pytest.raises(LakeConfigError, match="unknown key; there are ") as refused:
        read(f"{others[heading]}{heading}\n{needed}\nzzzz = 1\n")
    known = str(refused.value).partition("there are ")[2].split(", ")
    (section,) = (part for part in _TEMPLATE.split("\n\n") if part.startswith(heading))
    assert sorted(re.findall(r"^(?:# )?(\w+) = ", section, re.MULTILINE)) == known


def test_everything_can_be_said() -> None:
    config = read(
        '[kafka]\nbootstrap.servers = "a:1"\n"max.poll.records" = 7\n'
        '[lake]\nformat = "iceberg"\nlocation = "s3a://bucket/lake/"\nnamespace = "raw"\ntrigger = "1m30s"\n'
        'start = "latest"\nmax_records_per_batch = 5\nmin_partitions = 3\non_data_loss = "continue"\n'
        '[[topics]]\npattern = "a.*"\nformat = "json"\nregistry = "http://r"\ntable = "t_{topic}"\n'
        '[maintenance]\nevery = "5m"\nsmall_file = "1MiB"\n'
        '[spark]\nmaster = "local[2]"\nspark.ui.enabled = false\n'
    )
    assert config.kafka == {"bootstrap.servers": "a:1", "max.poll.records": "7"}
    assert config.location == "s3a://bucket/lake"
    assert config.trigger_seconds == 90
    assert config.topics[0].decoding("abc").subject == "abc-value"
    assert config.maintenance is not None
    assert config.maintenance.small_file_bytes == 1 << 20
    assert config.spark == {"master": "local[2]", "spark.ui.enabled": "false"}


def test_other_subjects_of_a_topic() -> None:
    rule = '[[topics]]\npattern = "a.*"\nformat = "avro"\nregistry = "http://r"\n'
    (topic,) = read(f'{_LAKE}{rule}other_subjects = ["shop.Order", "{{topic}}-old"]\n').topics
    assert topic.decoding("abc").other_subjects == ("shop.Order", "abc-old")
    assert read(_LAKE + rule).topics[0].decoding("abc").other_subjects == ()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (_LAKE, None, "no topic is named"),
        (f'{_LAKE}{_TOPIC}other_subjects = "a"\n', 7, "is not a list of texts"),
        (f'{_LAKE}{_TOPIC}other_subjects = ["a"]\n', 7, "a registry has subjects"),
        (_LAKE + "[lage]\n", 5, "did you mean lake"),
        (_KAFKA + '[lake]\nformat = "dleta"\n' + _TOPIC, 4, "did you mean delta"),
        (_KAFKA + '[lake]\nformat = "csv"\n' + _TOPIC, 4, "write one of delta, iceberg, parquet"),
        (_KAFKA + "[lake]\n" + _TOPIC, 3, "location"),
        ('[lake]\nlocation = "x"\n' + _TOPIC, None, "bootstrap.servers"),
        (_KAFKA + '[lake]\nformat = "iceberg"\n' + _TOPIC, 3, "state"),
        (_LAKE + _TOPIC + "\n" + '[[topics]]\nname = "b"\nformt = "json"\n', 10, "did you mean format"),
        (_LAKE + _TOPIC + "\n" + _TOPIC, 6, "named twice"),
        (_LAKE + '[[topics]]\ntable = "x"\n', 5, "either name"),
        (_LAKE + '[[topics]]\npattern = "("\n', 6, "regular expression"),
        (_LAKE + _TOPIC + 'format = "json"\n', 7, "schema or a registry"),
        (_LAKE + _TOPIC + 'schema_file = "nothing.avsc"\n', 7, "No such file"),
        (_LAKE + 'trigger = "soon"\n' + _TOPIC, 5, "duration"),
        (_LAKE + "max_records_per_batch = 0\n" + _TOPIC, 5, "above 0"),
        (_LAKE + _TOPIC + '[maintenance]\nkeep = "7d"\nsmall_file = "1GB"\n', 9, "again and again"),
        (_LAKE + _TOPIC + '[maintenance]\nsmall_file = "little"\n', 8, "size"),
        (_LAKE + _TOPIC + "keep_value = 1\n", 7, "neither true nor false"),
    ],
)  # fmt: skip
def test_an_error_says_the_line_and_what_to_do(text: str, line: int | None, said: str) -> None:
    with pytest.raises(LakeConfigError) as caught:
        read(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("/somewhere/lake.toml" + (f":{line}: " if line else ": "))


def test_what_is_not_toml_says_where() -> None:
    with pytest.raises(LakeConfigError, match="not TOML"):
        read("[kafka")


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(LakeConfigError, match="lake init"):
        load(tmp_path / "lake.toml")


def test_a_schema_can_stand_in_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "order.ddl").write_text("id bigint")
    path = tmp_path / "lake.toml"
    path.write_text(_LAKE + _TOPIC + 'format = "json"\nschema_file = "order.ddl"\n')
    assert load(path).topics[0].schema == "id bigint"


_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="canary";'
_CLIENT = f"""bootstrap.servers=b:2
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={_JAAS}
ssl.truststore.type=PEM
ssl.truststore.location=/ca.pem
"""


def test_how_to_connect_can_stand_in_a_client_file(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(_CLIENT)
    text = f'[kafka]\ncommand_config = "client.properties"\n[lake]\nlocation = "/data"\n{_TOPIC}'
    config = parse(text, tmp_path / "lake.toml")
    assert config.bootstrap == "b:2"
    assert config.kafka.security().protocol == "SASL_SSL"
    assert "command_config" not in config.kafka
    assert "canary" not in repr(config)


def test_the_section_comes_before_the_client_file(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(_CLIENT)
    more = '"bootstrap.servers" = "c:3"\n"ssl.truststore.location" = "certs/ca.pem"\n'
    text = f'[kafka]\ncommand_config = "client.properties"\n{more}[lake]\nlocation = "/data"\n{_TOPIC}'
    config = parse(text, tmp_path / "lake.toml")
    assert config.bootstrap == "c:3"
    assert config.kafka["ssl.truststore.location"] == str(tmp_path / "certs/ca.pem")


def test_a_property_of_another_client_is_refused_with_its_section() -> None:
    with pytest.raises(
        LakeConfigError, match=r"lake\.toml:1: kafka: sasl\.password .* set sasl\.jaas\.config"
    ):
        read(f'{_KAFKA}"sasl.password" = "canary"\n[lake]\nlocation = "/data"\n{_TOPIC}')
