"""The file `quorum-state`: what a voter must not forget between two starts. Its text only, no I/O.

The format is Kafka's, as one line of JSON; the older one, from before voters had directory ids, is read too.
"""

import json

from msgspec import Struct

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

QUORUM_STATE_FILE = "quorum-state"
NOBODY = -1
_DATA_VERSION = 1
_KNOWN_DATA_VERSIONS = (0, 1)


class QuorumState(Struct, frozen=True):
    """The newest epoch seen, who leads in it, and whom this node voted for. Only the older format also names
    all voters.
    """

    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO_UUID
    current_voters: tuple[int, ...] = ()


def encode_quorum_state(state: QuorumState) -> bytes:
    fields = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": uuid_to_text(state.voted_directory_id),
        "data_version": _DATA_VERSION,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_quorum_state(data: bytes) -> QuorumState:
    """Raises ProtocolError for anything that is not a quorum state."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the quorum state is not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("data_version") not in _KNOWN_DATA_VERSIONS:
        raise ProtocolError("the quorum state has no data_version that is known (0 or 1)")
    directory = fields.get("votedDirectoryId", uuid_to_text(ZERO_UUID))
    if not isinstance(directory, str):
        raise ProtocolError("the quorum state's votedDirectoryId is not a text")
    return QuorumState(
        _number(fields, "leaderId"),
        _number(fields, "leaderEpoch"),
        _number(fields, "votedId"),
        uuid_from_text(directory),
        _current_voters(fields),
    )


def _current_voters(fields: dict[str, object]) -> tuple[int, ...]:
    found = fields.get("currentVoters") or []
    if not isinstance(found, list) or not all(isinstance(voter, dict) for voter in found):
        raise ProtocolError("the quorum state's currentVoters are not a list of voters")
    return tuple(_number(voter, "voterId") for voter in found)


def _number(fields: dict[str, object], name: str) -> int:
    value = fields.get(name, NOBODY)
    if type(value) is not int or not NOBODY <= value < 2**31:
        raise ProtocolError(f"the quorum state's {name} is {value!r}, not a number from -1 on")
    return value
