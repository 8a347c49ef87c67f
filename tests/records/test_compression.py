"""The codecs in Kafka's dialects, and the cap on what they may unpack."""

import struct

import cramjam
import pytest

from mainstem.records.compression import CODEC_BY_CONFIG_NAME, Codec, CompressionError, compress, decompress

TEXT = b"the quick brown fox jumps over the lazy dog, " * 3000


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(200_000)])
def test_what_is_compressed_decompresses(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    assert decompress(codec, memoryview(packed), len(data) + 10) == data


@pytest.mark.parametrize("codec", Codec)
def test_one_byte_over_the_cap_is_refused(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(CompressionError, match="more than"):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("damage", ["cut", "noise", "empty head"])
def test_damaged_data_is_a_compression_error(codec: Codec, damage: str) -> None:
    packed = compress(codec, TEXT)
    damaged = {"cut": packed[:-7], "noise": b"\x9b" * 50, "empty head": b"\x00" * 12 + packed}[damage]
    with pytest.raises(CompressionError):
        decompress(codec, damaged, 10_000_000)


def test_snappy_is_framed_as_the_java_client_expects() -> None:
    packed = compress(Codec.SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def test_raw_snappy_of_librdkafka_is_understood() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT


@pytest.mark.parametrize("length", [-1, 2**31 - 1, 1000])
def test_a_snappy_block_that_does_not_fit_is_refused(length: int) -> None:
    framed = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, length) + b"abc"
    with pytest.raises(CompressionError, match="corrupt"):
        decompress(Codec.SNAPPY, framed, 1000)


def test_lz4_blocks_are_independent() -> None:
    packed = compress(Codec.LZ4, TEXT)
    assert packed[:4] == b"\x04\x22\x4d\x18"
    assert packed[4] & 0x20


def test_the_default_level_of_lz4_is_its_fast_compressor() -> None:
    text = "".join(f"{i * i * 7919 % 10007} and {i * 31 % 977}; " for i in range(4000)).encode()
    assert compress(Codec.LZ4, text) == compress(Codec.LZ4, text, 9) == compress(Codec.LZ4, text, 1)
    assert len(compress(Codec.LZ4, text, 8)) < len(compress(Codec.LZ4, text, 9))


def test_concatenated_gzip_members_are_one_stream() -> None:
    assert decompress(Codec.GZIP, compress(Codec.GZIP, b"ab") + compress(Codec.GZIP, b"cd"), 4) == b"abcd"
    large = bytes(5 * 2**20)
    member = compress(Codec.GZIP, large)
    assert decompress(Codec.GZIP, member + member, 2 * len(large)) == large + large
    with pytest.raises(CompressionError, match="more than"):
        decompress(Codec.GZIP, member + member, 2 * len(large) - 1)


def test_levels_are_taken() -> None:
    text = "".join(f"{i * i * 7919 % 10007} and {i * 31 % 977}; " for i in range(4000)).encode()
    for codec in (Codec.GZIP, Codec.ZSTD):
        assert len(compress(codec, text, 9)) < len(compress(codec, text, 1))


def test_config_names_lead_to_codecs() -> None:
    assert CODEC_BY_CONFIG_NAME["uncompressed"] is Codec.NONE
    assert CODEC_BY_CONFIG_NAME["none"] is Codec.NONE
    assert CODEC_BY_CONFIG_NAME["zstd"] is Codec.ZSTD
