"""Rules for the names of Kerberos principals, beside what Kafka 4.3.1 makes of the same rule and name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import ConfigError
from headrace.security.kerberos_name import KerberosName, UnknownKerberosName
from headrace.security.kerberos_rules import MAX_RULES, KerberosRules

REALM = "EXAMPLE.COM"
APP = r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g"
OF_REALM = "RULE:[1:$1@$0](.*@X)s/@.*//"

AS_KAFKA = [
    ("DEFAULT", "alice@EXAMPLE.COM", "alice"),
    ("DEFAULT", "alice/host@EXAMPLE.COM", "alice"),
    ("DEFAULT", "Alice@EXAMPLE.COM", "Alice"),
    ("RULE:[1:$1]", "alice@OTHER.COM", "alice"),
    ("RULE:[2:$1]", "alice/h@OTHER.COM", "alice"),
    (f"{APP},DEFAULT", "App.service-name@REALM.COM", "service-name"),
    (f"{APP},DEFAULT", "alice@EXAMPLE.COM", "alice"),
    (f"{APP}/L", "App.Service-Name@REALM.COM", "service-name"),
    (f"{APP}/U", "App.Service-Name@REALM.COM", "SERVICE-NAME"),
    ("RULE:[1:$1]/L", "ALICE@X", "alice"),
    ("RULE:[1:$1]L", "ALICE@X", "alice"),
    ("RULE:[1:$1]/U", "alice@X", "ALICE"),
    ("RULE:[1:$1]/", "a@X", "a"),
    ("RULE:[2:$1]/L", "TEST/Host@X", "test"),
    ("RULE:[2:$1;$2](^.*;admin$)s/;admin$//", "joe/admin@X", "joe"),
    ("RULE:[2:$2](root)s/.*/x/", "a/root@X", "x"),
    ("RULE:[2:$2](root)s/.*/x/g", "a/root@X", "xx"),
    ("RULE:[1:$1]s/a/b/", "aaa@X", "baa"),
    ("RULE:[1:$1]s/a/b/g", "aaa@X", "bbb"),
    ("RULE:[1:$1]s/a/b//L", "AaA@X", "aba"),
    ("RULE:[1:$1]s/a/b/L", "AaA@X", "aba"),
    ("RULE:[1:$1]s/(a)(b)/$2$1/", "abab@X", "baab"),
    ("RULE:[1:$1]s/(a)(b)/$2$1/g", "abab@X", "baba"),
    ("RULE:[1:$1]s/a/$0$0/", "a@X", "aa"),
    (r"RULE:[1:$1]s/a/\$/", "a@X", "$"),
    ("RULE:[1:$1]s/(?<n>o)/${n}${n}/", "bob@X", "boob"),
    ("RULE:[1:$1]s/b//", "bob@X", "ob"),
    ("RULE:[1:$1]s/b//g", "bob@X", "o"),
    ("RULE:[1:$1]s/x*/-/g", "bob@X", "-b-o-b-"),
    ("RULE:[1:$1]s/x*/-/", "bob@X", "-bob"),
    ("RULE:[1:$1]s/(straße)/$1/U", "straße@X", "STRASSE"),
    (OF_REALM, "bob@X", "bob"),
    ("RULE:[1:$0-$1]", "bob@X", "X-bob"),
    ("RULE:[1:$01]", "bob@X", "bob"),
    ("RULE:[1:x]", "bob@X", "x"),
    ("RULE:[1:]s/^$/z/", "bob@X", "z"),
    ("RULE:[1:$1](.*b)", "bob@X", "bob"),
    ("RULE:[3:$3],DEFAULT", "bob@EXAMPLE.COM", "bob"),
]


def rules(text: str) -> KerberosRules:
    """Cut as a list of the configuration is."""
    return KerberosRules.parse(text.split(","), REALM)


def mapped(text: str, name: str) -> str:
    return rules(text).local_name(KerberosName.parse(name))


@pytest.mark.parametrize(("text", "name", "expected"), AS_KAFKA)
def test_a_name_is_mapped_as_by_kafka(text: str, name: str, expected: str) -> None:
    assert mapped(text, name) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DEFAULT", "alice@OTHER.COM"),
        ("RULE:[1:$1]", "alice/h@OTHER.COM"),
        ("RULE:[2:$1;$2](^.*;admin$)s/;admin$//", "joe/user@X"),
        (OF_REALM, "bob@Y"),
        ("RULE:[1:$1](b)", "bob@X"),
        ("RULE:[1:$1]()", "bob@X"),
        ("RULE:[0:$0]", "bob@X"),
    ],
)
def test_a_name_that_no_rule_is_for_is_nobodys(text: str, name: str) -> None:
    with pytest.raises(UnknownKerberosName, match=f"no rule of .* applies to {name}"):
        mapped(text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RULE:[1:$1@$0]", "bob@Y"),
        ("RULE:[1:$1@$0],DEFAULT", "bob@EXAMPLE.COM"),  # the next rule is not asked
        ("RULE:[2:$1/$2]", "a/b@X"),
    ],
)
def test_what_a_rule_leaves_of_a_realm_or_host_is_no_users_name(text: str, name: str) -> None:
    with pytest.raises(UnknownKerberosName, match="not a simple name"):
        mapped(text, name)


@pytest.mark.parametrize("text", ["RULE:[1:]", "RULE:[1:$1]s/.*//", "RULE:[1:$1](user.*)s/user(.*)/$1/"])
def test_an_empty_name_is_nobodys(text: str) -> None:
    """In Kafka it is a user without a name."""
    with pytest.raises(UnknownKerberosName, match="an empty name"):
        mapped(text, "user@X")


@pytest.mark.parametrize(
    "text",
    [
        *("default", "", " DEFAULT", "DEFAULT/L", "RULE:", "RULE:[1:$1", "RULE:[1:$1](a", "RULE:[1:$1]s/a/b"),
        *("RULE:[1:$1]s/a/b/x", "RULE:[1:$1]s/a/b/gg", "RULE:[1:$1]/LU", "RULE:[1:$1]/l", "RULE:[:$1]"),
        *("RULE:[n:$1]", "RULE:[1:$1](a(b)c)", "RULE:[1:$1]s/a(/b/", "RULE:[1:$1]s/a{1,2}/b/"),
    ],
)
def test_a_rule_that_kafka_refuses_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^sasl\.kerberos\.principal\.to\.local\.rules: "):
        rules(text)


@pytest.mark.parametrize(
    "text",
    [
        *("RULE:[1:$2]", "RULE:[1:$]", "RULE:[1:$12]", "RULE:[1:$99999999999999999999]", "RULE:[2:$1$3]"),
        *("RULE:[1:$1]s/(a)/$2/", "RULE:[1:$1]s/a/$1/", "RULE:[1:$1]s/a/$/"),
    ],
)
def test_a_rule_that_would_fail_every_login_is_refused_at_start(text: str) -> None:
    """Kafka notices at the first login."""
    with pytest.raises(ConfigError, match=r"^sasl\.kerberos\.principal\.to\.local\.rules: "):
        rules(text)


@pytest.mark.parametrize("texts", [(), ("DEFAULT",) * (MAX_RULES + 1)])
def test_no_rule_and_too_many_are_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="no rule, or more than"):
        KerberosRules.parse(texts, REALM)


@pytest.mark.parametrize("pattern", ["(?=a", "a*+", r"\Qa\E", "x" * 5000])
def test_a_pattern_that_re2_lacks_is_refused(pattern: str) -> None:
    for text in (f"RULE:[1:$1]({pattern})", f"RULE:[1:$1]s/{pattern}/x/"):
        with pytest.raises(ConfigError, match="linear time"):
            rules(text)


def test_a_pattern_that_would_take_ages_elsewhere_is_quick() -> None:
    assert mapped("RULE:[1:$1]s/(a|a)*(a|a)*(a|a)*b/x/,DEFAULT", "a" * 900 + "@X") == "a" * 900


@pytest.mark.parametrize(
    "text", ["RULE:[1:$1$1]", "RULE:[1:$1]s/.*?/xxxxxxxxxx/g", "RULE:[1:" + "$1" * 500 + "](b)"]
)
def test_a_rule_makes_no_long_name(text: str) -> None:
    with pytest.raises(UnknownKerberosName, match="more than 1024 bytes"):
        mapped(text, "a" * 600 + "@X")


@pytest.mark.parametrize(
    ("text", "parameters"),
    [("alice@X", ("X", "alice")), ("kafka/h.example@X", ("X", "kafka", "h.example"))],
)
def test_a_name_has_parts_and_a_realm(text: str, parameters: tuple[str, ...]) -> None:
    name = KerberosName.parse(text)
    assert name.parameters == parameters
    assert str(name) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "alice", "@X", "alice@", "a/@X", "/b@X", "a/b/c@X", "a@b@X", "a@X/y"),
        *(r"a\/b@X", r"a\@b@X", "a\\@X", "a\n@X", "a\0@X", "a\u2028b@X", "a\ud800@X"),
        *("a" * 1024 + "@X", "ä" * 512 + "@X"),
        *("WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS", "WELLKNOWN/ANONYMOUS@X", "a@WELLKNOWN:ANONYMOUS"),
    ],
)
def test_any_other_name_is_nobodys(text: str) -> None:
    with pytest.raises(UnknownKerberosName):
        KerberosName.parse(text)


@given(st.text(st.sampled_from("RULE:[12]$01()s/a.*gLU,DEFAULT{}\\"), max_size=40), st.text(max_size=20))
def test_any_text_is_rules_that_map_or_refuse_any_name_or_is_refused(text: str, name: str) -> None:
    try:
        made = mapped(text, f"{name}@{REALM}")
    except (ConfigError, UnknownKerberosName):
        return
    assert made
    assert not {"/", "@"} & set(made)
