"""The records of `__consumer_offsets`, in Kafka's own schemas: the key says of what, the value what it is.

A key begins with its type, a value with its version; a record without a value deletes the key.
"""

from mainstem.coordinator.group.records.framing import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

__all__ = ["decode_key", "decode_value", "encode_key", "encode_value"]
