"""What table.toml may say, and how it is told what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.cli.table_init import _TEMPLATE
from headrace.spark.decoding.formats import Format
from headrace.spark.table.config import KeyFormat, Order, TableConfig, TableConfigError, load, parse

_KAFKA = '[kafka]\n"bootstrap.servers" = "a:1"\n'
_STORE = f'{_KAFKA}[store]\nlocation = "/data"\n'
_JSON = 'format = "json"\nschema = "id bigint, customer string"\n'
_TABLE = f'[[tables]]\ntopic = "orders"\n{_JSON}'
_INDEX = '[[indexes]]\ntable = "orders"\ncolumns = ["customer"]\n'


def read(text: str) -> TableConfig:
    return parse(text, Path("/somewhere/table.toml"))


def test_little_is_enough() -> None:
    config = read(f'{_STORE}[[tables]]\ntopic = "orders"\n')
    (spec,) = config.tables
    assert (spec.name, spec.topic, spec.dead_letters) == ("orders", "orders", "orders_dead_letters")
    assert (spec.key, spec.key_columns, spec.order) == (KeyFormat.BYTES, ("key",), Order.OFFSET)
    assert spec.decoding.format is Format.BYTES
    assert config.store.location == "file:///data"
    assert config.store.state == "file:///data/_headrace"
    assert config.store.start == "earliest"
    assert config.bootstrap == "a:1"


def test_the_template_is_a_configuration() -> None:
    (spec,) = read(_TEMPLATE.format(name="table.toml")).tables
    assert spec.key is KeyFormat.STRING
    assert [index.name for index in spec.indexes] == ["orders_by_customer"]
    assert spec.views[0].columns == ("count(*) AS orders", "try_sum(total) AS spent")


@pytest.mark.parametrize(
    ("heading", "needed"),
    [
        ("[store]", 'location = "x"'),
        ("[[tables]]", 'topic = "a"'),
        ("[[indexes]]", 'table = "orders"\ncolumns = ["customer"]'),
        ("[[views]]", 'name = "v"\nindex = "orders_by_customer"\ncolumns = ["count(*) AS n"]'),
        ("[maintenance]", 'every = "1h"'),
    ],
)
def test_the_template_has_every_key(heading: str, needed: str) -> None:
    others = {"[store]": f"{_KAFKA}{_TABLE}", "[[tables]]": _STORE, "[[views]]": f"{_STORE}{_TABLE}{_INDEX}"}
    before = others.get(heading, f"{_STORE}{_TABLE}")
    with pytest.raises(TableConfigError, match="unknown key; there are ") as refused:
        read(f"{before}{heading}\n{needed}\nzzzz = 1\n")
    known = str(refused.value).partition("there are ")[2].split(", ")
    (section,) = (part for part in _TEMPLATE.split("\n\n") if part.startswith(heading))
    assert sorted(re.findall(r"^(?:# )?(\w+) = ", section, re.MULTILINE)) == known


def test_the_template_warns_of_keys_that_move_and_shows_the_choice() -> None:
    template = _TEMPLATE.format(name="table.toml")
    assert "never changed again" in template
    (spec,) = read(template.replace('# order = "offset"', 'order = "timestamp"')).tables
    assert spec.order is Order.TIMESTAMP


def test_indexes_and_views_find_their_table() -> None:
    config = read(
        f'{_STORE}{_TABLE}[[tables]]\ntopic = "orders"\nname = "by_id"\nkey_fields = ["id"]\n{_JSON}'
        f'{_INDEX}include = ["id"]\n[[views]]\nname = "v"\nindex = "orders_by_customer"\n'
        'columns = ["count(*) AS n"]\n'
    )
    first, second = config.tables
    assert (first.indexes[0].columns, first.indexes[0].include) == (("customer",), ("id",))
    assert first.views[0].index == "orders_by_customer"
    assert (second.key_columns, second.indexes, second.views) == (("id",), (), ())


def test_a_key_has_a_schema_of_its_own() -> None:
    (spec,) = read(f'{_STORE}{_TABLE}key = "json"\nkey_schema = "id bigint"\n').tables
    assert spec.key_decoding is not None
    assert spec.key_decoding.schema == "id bigint"
    (spec,) = read(f'{_STORE}{_TABLE}key = "avro"\nkey_registry = "http://r"\n').tables
    assert spec.key_decoding is not None
    assert spec.key_decoding.subject == "orders-key"


def test_other_subjects_of_a_topic() -> None:
    text = f'{_STORE}[[tables]]\ntopic = "orders"\nformat = "avro"\nother_subjects = ["shop.Order"]\n'
    (spec,) = read(f'{text}registry = "http://r"\n').tables
    assert (spec.decoding.subject, spec.decoding.other_subjects) == ("orders-value", ("shop.Order",))
    with pytest.raises(TableConfigError, match="a registry has subjects"):
        read(text)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (_STORE, None, "no table is named"),
        (f"{_STORE}[[table]]\n", 5, "did you mean tables"),
        (f"{_STORE}[tables]\n", 5, "write [[tables]], with two brackets"),
        (f"{_STORE}[[tables]]\n", 5, "topic is missing"),
        (f'{_STORE}[[tables]]\ntopic = "a"\nformt = "json"\n', 7, "did you mean format"),
        (f'{_STORE}[[tables]]\ntopic = "a"\nformat = "json"\n', 7, "needs a schema or a registry"),
        (f'{_STORE}[[tables]]\ntopic = "a"\nkey_fields = ["id"]\n', 7, "bytes have no fields"),
        (f'{_STORE}{_TABLE}key_fields = "id"\n', 9, "is not a list of texts"),
        (f'{_STORE}{_TABLE}key_fields = ["id"]\nkey = "string"\n', 9, "keep one"),
        (f'{_STORE}{_TABLE}key = "json"\n', 9, "the key: json needs a schema"),
        (f'{_STORE}{_TABLE}key = "string"\nkey_schema = "a int"\n', 9, "needs neither schema nor registry"),
        (f'{_STORE}{_TABLE}[[tables]]\ntopic = "Orders"\n', 9, "is already the name of tables[0]"),
        (f'{_STORE}[[tables]]\ntopic = "_a"\n', 5, "cannot be the name of a table"),
        (f'{_STORE}{_TABLE}[[indexes]]\ntable = "order"\ncolumns = ["a"]\n', 10, "did you mean orders"),
        (f'{_STORE}{_TABLE}[[indexes]]\ntable = "orders"\n', 9, "columns is missing"),
        (f'{_STORE}{_TABLE}{_INDEX}[[views]]\nname = "v"\nindex = "x"\ncolumns = ["a"]\n', 14, "no index x"),
        (f'{_STORE}{_TABLE}{_INDEX}name = "orders"\n', 12, "is already"),
        (f'[kafka]\n[store]\nlocation = "a"\n{_TABLE}', 1, "the brokers are missing"),
        ('[kafka]\nbootstrap.servers = "a:1"\n[store]\n', 3, "Delta tables are directories"),
        (f'{_STORE}format = "parquet"\n{_TABLE}', 5, "write one of delta, iceberg"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int | None, said: str) -> None:
    with pytest.raises(TableConfigError) as caught:
        read(text)
    assert said in str(caught.value)
    where = "/somewhere/table.toml" if line is None else f"/somewhere/table.toml:{line}"
    assert str(caught.value).startswith(f"{where}: ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TableConfigError, match="headrace table init"):
        load(tmp_path / "table.toml")


def test_a_table_that_is_not_named() -> None:
    with pytest.raises(TableConfigError, match="no table x; it has orders"):
        read(_STORE + _TABLE).table("x")
