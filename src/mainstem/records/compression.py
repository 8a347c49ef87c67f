"""The codecs of a record batch: gzip, snappy (xerial framing), lz4 frames and zstd.

Every decompression has a cap given by the caller: a few bytes must never become gigabytes. The native codecs
are imported on first use, because a broker that passes batches through never needs them.
"""

import struct
import zlib
from enum import IntEnum
from mmap import mmap

Buffer = bytes | bytearray | memoryview

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
_LENGTH = struct.Struct(">i")
_GZIP_WINDOW_BITS = 31
# What cramjam says when the output does not fit; the only sign by which "too small" differs from "corrupt".
_OUTPUT_FULL = "failed to write whole buffer"
_FIRST_GUESS_BYTES = 64 * 1024
_LARGE_BYTES = 4 * 1024 * 1024


class Codec(IntEnum):
    """The compression of a batch, by its id in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The name in `compression.type`."""
        return "uncompressed" if self is Codec.NONE else self.name.lower()


CODEC_BY_CONFIG_NAME = {codec.config_name: codec for codec in Codec} | {"none": Codec.NONE}

_DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
# Kafka means the fast compressor of lz4 by the level that is its default, and by all others the thorough one.
_FAST_LZ4_LEVEL = 1


class CompressionError(ValueError):
    """The data is not what its codec says, or would become larger than allowed."""


class DecompressionLimitError(CompressionError):
    """The data would become larger than allowed."""


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the form in which Kafka clients expect it inside a batch."""
    if codec is Codec.NONE:
        return bytes(data)
    if level is None:
        level = _DEFAULT_LEVELS.get(codec, 0)
    if codec is Codec.GZIP:
        compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        return compressor.compress(data) + compressor.flush()
    if codec is Codec.SNAPPY:
        return _compress_snappy(memoryview(data))
    import cramjam

    if codec is Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data, level))
    if level == _DEFAULT_LEVELS[Codec.LZ4]:
        level = _FAST_LZ4_LEVEL
    # Kafka's Java client refuses linked blocks.
    stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    for start in range(0, len(data), _LARGE_BYTES):
        stream.compress(bytes(data[start : start + _LARGE_BYTES]))
    return bytes(stream.finish())


def decompress(codec: Codec, data: Buffer, max_size: int) -> bytes | memoryview:
    """The plain bytes; CompressionError when they are corrupt or more than `max_size`."""
    if codec is Codec.NONE:
        if len(data) > max_size:
            raise _too_large(codec, max_size)
        return bytes(data)
    if codec is Codec.GZIP:
        return _decompress_gzip(data, max_size)
    if codec is Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), max_size)
    return _decompress_stream(codec, data, max_size)


def _too_large(codec: Codec, max_size: int) -> DecompressionLimitError:
    return DecompressionLimitError(f"{codec.name.lower()} data decompresses to more than {max_size} bytes")


def _corrupt(codec: Codec, reason: object) -> CompressionError:
    return CompressionError(f"corrupt {codec.name.lower()} data: {reason}")


def _decompress_gzip(data: Buffer, max_size: int) -> bytes | memoryview:
    plain = bytearray()
    rest: Buffer = data
    stream = zlib.decompressobj(_GZIP_WINDOW_BITS)
    while rest:
        try:
            # One byte more than allowed tells "exactly full" from "too large"; 0 would mean no limit.
            plain += stream.decompress(rest, min(max_size - len(plain) + 1, _LARGE_BYTES))
        except zlib.error as error:
            raise _corrupt(Codec.GZIP, error) from None
        if len(plain) > max_size:
            raise _too_large(Codec.GZIP, max_size)
        rest = stream.unconsumed_tail
        if stream.eof:
            rest, stream = stream.unused_data, zlib.decompressobj(_GZIP_WINDOW_BITS)
        elif not rest:
            raise _corrupt(Codec.GZIP, "the stream is cut off")
    return memoryview(plain) if len(plain) > _LARGE_BYTES else bytes(plain)


def _compress_snappy(data: memoryview) -> bytes:
    import cramjam

    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(bytes(data[start : start + _XERIAL_BLOCK_SIZE])))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_size: int) -> bytes:
    """Xerial-framed blocks as the Java client writes them, or one raw block as librdkafka does."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, max_size, max_size)
    parts: list[bytes] = []
    left = max_size
    position, end = len(_XERIAL_HEADER), len(data)
    while position < end:
        if end - position < _LENGTH.size:
            raise _corrupt(Codec.SNAPPY, "the frame is cut off")
        length = _LENGTH.unpack_from(data, position)[0]
        position += _LENGTH.size
        if not 0 <= length <= end - position:
            raise _corrupt(Codec.SNAPPY, f"a block of {length} bytes does not fit")
        part = _decompress_snappy_block(data[position : position + length], left, max_size)
        parts.append(part)
        left -= len(part)
        position += length
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, left: int, max_size: int) -> bytes:
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(block) > left:
            raise _too_large(Codec.SNAPPY, max_size)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, error) from None


def _decompress_stream(codec: Codec, data: Buffer, max_size: int) -> bytes | memoryview:
    """lz4 and zstd: into an output that grows up to the cap, since neither codec can be told a limit."""
    import cramjam

    decompress_into = cramjam.lz4.decompress_into if codec is Codec.LZ4 else cramjam.zstd.decompress_into
    capacity = min(max_size, max(4 * len(data), _FIRST_GUESS_BYTES))
    while True:
        # To fill very much memory with zeros, or to copy it, would hold up all other threads.
        large = capacity > _LARGE_BYTES
        output: Buffer = memoryview(mmap(-1, capacity)) if large else bytearray(capacity)
        try:
            size = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL not in str(error):
                raise _corrupt(codec, error) from None
            if capacity >= max_size:
                raise _too_large(codec, max_size) from None
            capacity = min(max_size, capacity * 4)
            continue
        plain = memoryview(output)[:size]
        return plain if large else bytes(plain)
