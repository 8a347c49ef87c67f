"""Every API and version is written and read exactly as an independent codec does it."""

import pytest

from mainstem.protocol import codec
from mainstem.protocol.layout import StructLayout, layout_of
from tests.protocol import kio_peer
from tests.protocol.messages import MessageFactory, all_messages

EXAMPLES_PER_VERSION = 4
MESSAGES = list(all_messages())

# Messages and versions that the peer codec does not know. The test below fails when one is missing here, and
# also when one is here without need.
UNKNOWN_TO_PEER: set[tuple[str, int]] = set()


def test_the_peer_codec_knows_every_message_and_version() -> None:
    unknown = {
        (cls.__name__, version)
        for cls, versions in MESSAGES
        for version in versions
        if kio_peer.peer_class(cls, version) is None
    }
    assert unknown == UNKNOWN_TO_PEER


@pytest.mark.parametrize(("cls", "versions"), MESSAGES, ids=[cls.__name__ for cls, _ in MESSAGES])
def test_bytes_and_values_agree_with_the_peer_codec(cls: type, versions: list[int]) -> None:
    for version in versions:
        peer = kio_peer.peer_class(cls, version)
        if peer is None:
            continue
        layout = layout_of(cls, version)
        limits = dict(kio_peer.narrow_fields(layout, peer))
        factory = MessageFactory(f"{cls.__name__} {version}", limits, own_fields=False)
        for _ in range(EXAMPLES_PER_VERSION):
            _check_both_directions(factory.struct(layout), layout, version, peer)


def _check_both_directions(message: object, layout: StructLayout, version: int, peer: type) -> None:
    written = codec.encode(message, version)
    entity, size = kio_peer.peer_decode(peer, written)
    assert size == len(written)
    assert kio_peer.peer_as_plain(layout, entity) == kio_peer.as_plain(layout, message)
    written_by_peer = kio_peer.peer_encode(entity)
    assert written_by_peer == written
    assert codec.decode(type(message), version, written_by_peer) == message
