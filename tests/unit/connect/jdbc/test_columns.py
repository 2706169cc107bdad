"""Values as the texts that a database reads."""

from __future__ import annotations

import pytest

from headrace.connect.jdbc.columns import Column, Form, canonical, column_of, named_as
from headrace.connect.upserts import BadRow

PRICE = Column("c", Form.DECIMAL, size=5, scale=2)


def _column(form: Form, size: int = 0) -> Column:
    return Column("c", form, size=size)


@pytest.mark.parametrize(
    ("column", "text", "staged"),
    [
        (_column(Form.WHOLE), "5", "5"),
        (_column(Form.WHOLE), "5.0", "5"),
        (_column(Form.WHOLE), "-9223372036854775808", "-9223372036854775808"),
        (PRICE, "1", "1.00"),
        (PRICE, "1.005", "1.01"),
        (PRICE, "1e2", "100.00"),
        (PRICE, "-999.99", "-999.99"),
        (Column("c", Form.DECIMAL, size=38), "9" * 38, "9" * 38),
        (_column(Form.FLOAT), "1e300", "1e+300"),
        (_column(Form.FLOAT), "-Infinity", "-inf"),
        (_column(Form.BOOLEAN), "True", "true"),
        (_column(Form.BOOLEAN), "0", "false"),
        (_column(Form.DATE), "2026-03-01", "2026-03-01"),
        (_column(Form.DATE), "2026-03-01T23:00:00Z", "2026-03-01"),
        (_column(Form.DATE), "2026-03-01T23:00:00-05:00", "2026-03-02"),
        (_column(Form.DATE), "0", "1970-01-01"),
        (_column(Form.TIME), "10:00:00.5", "10:00:00.500000"),
        (_column(Form.TIME), "3600000", "01:00:00"),
        (_column(Form.TIME), "01:00:00+05:30", "19:30:00"),
        (Column("c", Form.TIME, "timetz"), "10:00:00+02", "08:00:00+00:00"),
        (Column("c", Form.TIME, "timetz"), "10:00", "10:00:00+00:00"),
        (_column(Form.TIMESTAMP), "2026-03-01T10:00:00+02:00", "2026-03-01 08:00:00.000000"),
        (_column(Form.TIMESTAMP), "2026-03-01 10:00:00", "2026-03-01 10:00:00.000000"),
        (_column(Form.TIMESTAMP), "-1", "1969-12-31 23:59:59.999000"),
        (_column(Form.ZONED), "2026-03-01 10:00:00+02", "2026-03-01 08:00:00.000000+00:00"),
        (_column(Form.BYTES), "AQI=", "AQI="),
        (_column(Form.TEXT, 3), "äöü", "äöü"),
        (_column(Form.OWN), '{"a":1}', '{"a":1}'),
    ],
)
def test_what_fits(column: Column, text: str, staged: str) -> None:
    assert canonical(column, text) == staged


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        (_column(Form.WHOLE), "5.5", "c is a whole number, and '5.5' is none"),
        (_column(Form.WHOLE), "9223372036854775808", "is none"),
        (_column(Form.WHOLE), "NaN", "is none"),
        (_column(Form.WHOLE), "x" * 50, r"'x{40}\.\.\.' is none"),
        (PRICE, "1000", "is none"),
        (PRICE, "999.995", "is none"),
        (PRICE, "Infinity", "is none"),
        (_column(Form.FLOAT), "x", "is none"),
        (_column(Form.FLOAT), "1e309", "is none"),
        (_column(Form.BOOLEAN), "yes", "c is a boolean"),
        (_column(Form.DATE), "2026-02-30", "c is a date"),
        (_column(Form.DATE), "9" * 20, "c is a date"),
        (_column(Form.TIME), "86400000", "c is a time"),
        (_column(Form.TIMESTAMP), "soon", "c is a timestamp"),
        (_column(Form.BYTES), "AQI", "c is a bytes in base64"),
        (_column(Form.TEXT, 3), "four", "c takes 3 characters, and the value has 4"),
        (_column(Form.TEXT), "\ud800", "half a surrogate pair"),
        (_column(Form.OWN), "a\x00", "cannot keep: NUL"),
    ],
)
def test_what_does_not(column: Column, text: str, reason: str) -> None:
    with pytest.raises(BadRow, match=reason):
        canonical(column, text, refused=frozenset("\x00"))


def test_columns_as_drivers_describe_them() -> None:
    def form(jdbc_type: int, name: str, size: int = 0, *, signed: bool = True, own: bool = False) -> Form:
        return column_of("c", jdbc_type, name, size, 0, signed=signed, own_texts=own).form

    assert form(4, "int4") is Form.WHOLE
    assert form(-5, "BIGINT UNSIGNED", 20, signed=False) is Form.DECIMAL
    assert form(2, "numeric", 9) is Form.DECIMAL
    assert form(2, "numeric", 0, own=True) is Form.OWN, "as many digits as one likes"
    assert form(3, "DECIMAL", 65) is Form.OWN
    assert form(93, "timestamptz") is Form.ZONED
    assert form(93, "timestamp") is Form.TIMESTAMP
    assert form(12, "text", own=True) is Form.TEXT
    assert form(12, "mood", own=True) is Form.OWN, "an enumeration calls itself a text"
    assert form(12, "LONG VARCHAR") is Form.TEXT
    assert form(1111, "jsonb", own=True) is Form.OWN
    assert form(-2, "bytea") is Form.BYTES


def test_names_that_differ_by_case() -> None:
    names = frozenset({"ID", "v", "V"})
    assert [named_as(each, names) for each in ("id", "v", "V", "x")] == ["ID", "v", "V", "x"]
    assert named_as("note", frozenset({"NOTE", "Note"})) == "note", "nobody knows which"
