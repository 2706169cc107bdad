"""PEM texts: blocks found wherever they stand, and written again in a form that OpenSSL reads.

In a properties file continuation lines join the lines of a block to one, and OpenSSL wants them short.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

CERTIFICATE: Final = "CERTIFICATE"
_BLOCK: Final = re.compile(
    rb"-----BEGIN (?P<label>[A-Z0-9 ]{1,64})-----(?P<body>.*?)-----END (?P=label)-----", re.DOTALL
)
_WIDTH: Final = 64


class Block(NamedTuple):
    label: str
    text: bytes

    def __repr__(self) -> str:
        return f"Block({self.label})"  # a key is one, too


def blocks(content: bytes) -> list[Block]:
    return [_block(found["label"].decode(), found["body"]) for found in _BLOCK.finditer(content)]


def _block(label: str, body: bytes) -> Block:
    if b":" not in body:  # with headers, as old encrypted keys have them, it stays as it is
        joined = b"".join(body.split())
        body = b"\n".join(joined[at : at + _WIDTH] for at in range(0, len(joined), _WIDTH))
        body = b"\n" + body + b"\n"
    return Block(label, b"-----BEGIN %b-----%b-----END %b-----\n" % (label.encode(), body, label.encode()))


def certificates(content: bytes) -> list[bytes]:
    return [block.text for block in blocks(content) if block.label == CERTIFICATE]


def private_key(content: bytes) -> bytes | None:
    return next((block.text for block in blocks(content) if block.label.endswith("PRIVATE KEY")), None)
