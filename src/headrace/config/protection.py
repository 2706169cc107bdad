"""Properties that ask for protection: who may connect, what they may do, what others can overhear.

Headrace has none of it yet. A broker that passed over such a property would serve everybody, and its operator
would believe otherwise. So it does not start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from headrace.core.errors import ConfigError


def _is_given(text: str) -> bool:
    return bool(text)


def _is_on(text: str) -> bool:
    return text.lower() == "true"


_ASKING: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    (r"authorizer\.class\.name", _is_given),
    (r"super\.users", _is_given),
    (r"security\.inter\.broker\.protocol", lambda text: text.upper() not in ("", "PLAINTEXT")),
    (r"ssl\.client\.auth", lambda text: text.lower() not in ("", "none")),
    (r"ssl\.(keystore|truststore)\.(location|key|certificate\.chain|certificates|password)", _is_given),
    (r"ssl\.key\.password", _is_given),
    (r"sasl\.enabled\.mechanisms", _is_given),
    (r"sasl\.mechanism(\.inter\.broker|\.controller)\.protocol", _is_given),
    (r"([a-z0-9-]+\.)?sasl\.jaas\.config", _is_given),
    (r"([a-z0-9-]+\.)?sasl\.(server|login)\.callback\.handler\.class", _is_given),
    (r"delegation\.token\.(secret|master)\.key", _is_given),
    (r"zookeeper\.(set\.acl|ssl\.client\.enable)", _is_on),
)
"""What a property's name looks like, without the prefix of one listener, and which values ask."""
_OF_ONE_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.")


def require_no_protection(mapping: Mapping[str, str]) -> None:
    """Raises ConfigError with the names of all properties that ask for it."""
    asking = sorted(name for name, text in mapping.items() if _asks(name, text.strip()))
    if asking:
        raise ConfigError(
            f"{', '.join(asking)}: authentication, authorization and encryption are not there yet, and"
            " without them everybody who reaches the listeners may do everything; remove these properties if"
            " only trusted clients can reach them, else do not start this broker"
        )


def _asks(name: str, text: str) -> bool:
    bare = _OF_ONE_LISTENER.sub("", name, count=1)
    return any(re.fullmatch(pattern, bare) is not None and asks(text) for pattern, asks in _ASKING)
