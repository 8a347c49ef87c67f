"""What a producer compresses is stored in that codec: nobody falls back to plain batches in silence.

librdkafka compresses with lz4 only where the broker advertises FindCoordinator.
"""

import pytest

from mainstem.records.batch import read_header
from tests.support.clients import WRITERS, Message
from tests.support.scenario import fetch_request
from tests.support.target import Target
from tests.support.wire import WireClient

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_CODEC_BITS = 7
_FETCH_BY_NAME = 12


@pytest.mark.parametrize("client", WRITERS)
def test_batches_are_stored_in_the_codec_of_their_producer(target: Target, client: str) -> None:
    topic = target.create_topic(partitions=len(CODECS))
    for number, codec in enumerate(CODECS):
        WRITERS[client](target, topic, [Message(b"squeeze me " * 500)] * 3, codec=codec, partition=number)
    with WireClient(target) as wire:
        for number, codec in enumerate(CODECS):
            answer = wire.call(fetch_request(topic, 0, partition=number), _FETCH_BY_NAME)
            stored = bytes(answer.responses[0].partitions[0].records or b"")
            header = read_header(stored, 0)
            assert CODECS[header.attributes & _CODEC_BITS] == codec
            assert (header.size < 5000) == (codec != "none")
