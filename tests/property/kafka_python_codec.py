"""kafka-python's codec as an oracle: reads bytes of a message and writes them again."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

with warnings.catch_warnings():
    # It loads its schemas, while it is imported, in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol
    from kafka.protocol.api_data import ApiData
    from kafka.protocol.api_message import ApiMessage

    for _module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        # `old` is another generation of the same names, and the stub generator is a script.
        if ".old" not in _module.name and not _module.name.endswith("generate_stubs"):
            import_module(_module.name)


@cache
def kafka_python_classes() -> dict[str, Any]:
    def described(base: Any) -> Iterator[Any]:
        for each in base.__subclasses__():
            if "_json" in vars(each):
                yield each
            yield from described(each)

    return {each.__name__: each for base in (ApiMessage, ApiData) for each in described(base)}


def kafka_python_again(codec: Any, raw: bytes, version: int) -> bytes:
    if issubclass(codec, ApiData):
        return bytes(codec.decode(raw, version=version, header=False).encode(version=version, header=False))
    read = codec.decode(raw, version=version)
    read._header = None  # decoding without a header leaves it unset, and encoding asks for it
    return bytes(read.encode(version=version))
