"""--add-scram, as kafka-storage has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.scram_argument import parse_scram
from headrace.core.errors import ConfigError
from headrace.security.scram_credential import ScramMechanism


def test_kafkas_example() -> None:
    user = parse_scram("SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=8192]")
    assert (user.name, user.mechanism, user.iterations) == ("alice", ScramMechanism.SHA_256, 8192)
    assert user.password is not None
    assert user.password.reveal() == "alice-secret"
    assert "alice-secret" not in repr(user)


def test_a_password_may_come_another_way() -> None:
    user = parse_scram("scram-sha-512=[name=admin]")
    assert (user.mechanism, user.password, user.iterations) == (ScramMechanism.SHA_512, None, 4096)


@given(st.text(min_size=1))
def test_any_password_fits_into_quotes(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    user = parse_scram(f'SCRAM-SHA-512=[password="{quoted}",name="a, b"]')
    assert user.name == "a, b"
    assert user.password is not None
    assert user.password.reveal() == password


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("canary", "write SCRAM-SHA-512="),
        ("SCRAM-SHA-512=name=a,password=canary", "write SCRAM-SHA-512="),
        ("SCRAM-SHA-1=[name=a,password=canary]", "there are SCRAM-SHA-256 and SCRAM-SHA-512"),
        ("SCRAM-SHA-512=[password=canary]", "no name"),
        ("SCRAM-SHA-512=[name=a,password=]", "is empty"),
        ("SCRAM-SHA-512=[name=a,password=can,ary]", "double quotes"),
        ("SCRAM-SHA-512=[name=a,password=can]ary]", "double quotes"),
        ("SCRAM-SHA-512=[name=a,password=canary,password=canary]", "each once"),
        ("SCRAM-SHA-512=[name=a,password=x,canary=y]", "each once"),
        ("SCRAM-SHA-512=[name=a,saltedpassword=canary]", "give the password"),
        ("SCRAM-SHA-512=[name=a,password=canary,iterations=100]", "from 4096 to 16384"),
        ("SCRAM-SHA-512=[name=a,password=canary,iterations=many]", "from 4096 to 16384"),
    ],
)
def test_what_is_wrong_is_said_without_what_was_given(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as raised:
        parse_scram(text)
    assert "canary" not in str(raised.value)
