"""The five codecs of record batches, with a cap on what a batch may expand to.

A few hundred bytes can claim, or really become, gigabytes. Wherever a format declares the size of its content
(snappy, zstd, lz4) the claim is checked before anything is allocated; all the others grow step by step
and stop at the cap. The cap is the caller's `max_bytes`, and for inputs that are small also a ratio.

Snappy has two shapes: Java clients frame it in blocks, as snappy-java does, and librdkafka sends it
raw. Both are read, the framed one is written. Codecs are imported when they are first used: a broker that
never opens a batch pays nothing for them.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from types import ModuleType
from typing import Final

from headrace.core.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from headrace.core.ports import Buffer


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str) -> Compression:
        """The codec by the name that configuration uses: none, gzip, snappy, lz4, zstd."""
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(codec.name.lower() for codec in cls)
            raise UnsupportedCompression(f"unknown compression {name!r}: choose one of {known}") from None


DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
MAX_RATIO: Final = 1100
"""Deflate cannot pass 1032:1. Zstd can, but only by repetition, which the free allowance covers."""
RATIO_FREE_BYTES: Final = 64 * 1024 * 1024
"""Output up to this is not judged by its ratio: a batch of zeros is legitimate."""
MAX_FRAMES: Final = 16
"""Concatenated frames in one batch. Clients write one; each further one costs a copy of what remains."""

_STEP_BYTES: Final = 256 * 1024
_GZIP_WINDOW: Final = 31  # 15 bits of window, 16 says: with the gzip wrapper
_LZ4_DEFAULT_LEVEL: Final = 9  # Kafka's default, which means the fast compressor and not level 9
_LZ4_MAX_LEVEL: Final = 16
_ZSTD_MAX_WINDOW_LOG: Final = 27

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK: Final = 32 * 1024
_SNAPPY_MAX_RATIO: Final = 24  # a copy of 64 bytes takes 3
_LENGTH: Final = Struct(">i")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the given codec; `level` None is the codec's own default."""
    if codec == Compression.NONE:
        return bytes(data)
    if codec == Compression.GZIP:
        gzip = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
        return gzip.compress(data) + gzip.flush()
    if codec == Compression.SNAPPY:
        return _compress_snappy(data)
    if codec == Compression.LZ4:
        return _compress_lz4(data, level)
    if codec == Compression.ZSTD:
        compressed: bytes = _zstd().compress(data, 3 if level is None else level)
        return compressed
    raise UnsupportedCompression(f"compression type {codec} does not exist")


def decompress(codec: int, data: Buffer, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """What `data` expands to. CorruptBatch where it is broken, InvalidRecord where it passes the cap."""
    if codec == Compression.NONE:
        return bytes(data)
    opener = _OPENERS.get(codec)
    if opener is None:
        raise UnsupportedCompression(f"compression type {codec} does not exist")
    cap = min(max_bytes, max(RATIO_FREE_BYTES, len(data) * MAX_RATIO))
    return opener(data, cap)


def _too_large(cap: int) -> InvalidRecord:
    return InvalidRecord(f"the batch expands to more than {cap} bytes: send smaller batches")


def _truncated(codec: str) -> CorruptBatch:
    return CorruptBatch(f"the {codec} data of the batch ends too early")


def _decompress_gzip(data: Buffer, cap: int) -> bytes:
    parts = []
    rest: Buffer = data
    room = cap
    for _ in range(MAX_FRAMES):
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            part = member.decompress(rest, room + 1)
        except zlib.error as error:
            raise CorruptBatch(f"the gzip data of the batch is broken: {error}") from None
        room -= len(part)
        if room < 0:
            raise _too_large(cap)
        parts.append(part)
        if not member.eof:
            raise _truncated("gzip")
        rest = member.unused_data
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise CorruptBatch(f"more than {MAX_FRAMES} gzip members in one batch")


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam

    out = bytearray(_XERIAL_HEADER)
    with memoryview(data) as view:
        for start in range(0, len(view), _XERIAL_BLOCK):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
            out += _LENGTH.pack(len(block))
            out += block
    return bytes(out)


def _decompress_snappy(data: Buffer, cap: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(data, cap)
    parts = []
    end = len(data)
    position = len(_XERIAL_HEADER)
    if end < position:
        raise _truncated("snappy")
    room = cap
    while position < end:
        if bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # streams may be concatenated, header and all
            continue
        if end - position < _LENGTH.size:
            raise _truncated("snappy")
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if length <= 0 or length > end - position:
            raise CorruptBatch(f"a snappy block of {length} bytes where {end - position} remain")
        part = _snappy_block(data[position : position + length], room)
        room -= len(part)
        parts.append(part)
        position += length
    return b"".join(parts)


def _snappy_block(block: Buffer, cap: int) -> bytes:
    import cramjam

    if not block:
        raise _truncated("snappy")
    try:
        declared = int(cramjam.snappy.decompress_raw_len(block))
        if declared > cap:
            raise _too_large(cap)
        if declared > len(block) * _SNAPPY_MAX_RATIO:
            raise CorruptBatch(f"{len(block)} bytes of snappy cannot become {declared}")
        out = bytearray(declared)
        written = cramjam.snappy.decompress_raw_into(block, out) if declared else 0
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"the snappy data of the batch is broken: {error}") from None
    if written != declared:
        raise _truncated("snappy")
    return bytes(out)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    fast = level is None or level == _LZ4_DEFAULT_LEVEL
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None or fast else min(level, _LZ4_MAX_LEVEL),
        block_linked=False,  # Kafka's Java reader refuses linked blocks
        store_size=False,
    )
    return compressed


def _decompress_lz4(data: Buffer, cap: int) -> bytes:
    import lz4.frame

    parts: list[bytes] = []
    room = cap
    rest: Buffer = data
    for _ in range(MAX_FRAMES):
        try:
            declared = lz4.frame.get_frame_info(rest)["content_size"]
            if declared > room:
                raise _too_large(cap)
            opener = lz4.frame.LZ4FrameDecompressor()
            feed = rest
            while not opener.eof:
                # The library allocates max_length at once, so it is asked for a bounded step each time.
                step = min(room + 1, max(_STEP_BYTES, 4 * len(rest)))
                part = opener.decompress(feed, max_length=step)
                room -= len(part)
                if room < 0:
                    raise _too_large(cap)
                parts.append(part)
                if not part and not opener.eof:
                    raise _truncated("lz4")
                feed = b""
        except (RuntimeError, ValueError) as error:
            raise CorruptBatch(f"the lz4 data of the batch is broken: {error}") from None
        rest = opener.unused_data or b""
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise CorruptBatch(f"more than {MAX_FRAMES} lz4 frames in one batch")


def _zstd() -> ModuleType:
    """The standard library's, or before Python 3.14 the same module as a package of its own."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _decompress_zstd(data: Buffer, cap: int) -> bytes:
    zstd = _zstd()
    parts = []
    room = cap
    rest: Buffer = data
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_MAX_WINDOW_LOG}
    for _ in range(MAX_FRAMES):
        try:
            declared = zstd.get_frame_info(rest).decompressed_size or 0  # None: the frame does not say
            if declared > room:
                raise _too_large(cap)
            frame = zstd.ZstdDecompressor(options=options)
            part = frame.decompress(rest, room + 1)
        except zstd.ZstdError as error:
            raise CorruptBatch(f"the zstd data of the batch is broken: {error}") from None
        room -= len(part)
        if room < 0:
            raise _too_large(cap)
        if not frame.eof:
            raise _truncated("zstd")
        parts.append(part)
        rest = frame.unused_data
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise CorruptBatch(f"more than {MAX_FRAMES} zstd frames in one batch")


_OPENERS: Final[dict[int, Callable[[Buffer, int], bytes]]] = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
