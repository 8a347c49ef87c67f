"""A batch whose records must be checked and take long: checked and recompressed before the log has it.

Most batches are taken as they come, by their header. A compacted topic wants to see the keys, and a topic
with a compression of its own the records; a small compressed batch may hold hundreds of megabytes. Whoever
appends asks `is_heavy`, has the steps done where they hold up nobody, and appends with the result.
"""

from typing import Final

from mainstem.config import LogConfig
from mainstem.protocol.errors import KafkaError
from mainstem.records.batch import COMPRESSION_MASK, HEADER, HEADER_SIZE, LOG_OVERHEAD
from mainstem.records.compression import CODEC_BY_CONFIG_NAME, Codec
from mainstem.storage.incoming.key_check import KeyCheck, opened
from mainstem.storage.incoming.validation import recompress

_LIGHT_RECORDS_MAX: Final = 2_000  # a hop from key to key takes a third of a microsecond
# What takes a few milliseconds at most: to open, where the records may have 250 times the size, and to
# compress. The codecs that are missing make a kilobyte a megabyte, or much more.
_LIGHT_TO_OPEN_BYTES: Final = {Codec.NONE: 1024 * 1024, Codec.SNAPPY: 64 * 1024, Codec.LZ4: 64 * 1024}
_LIGHT_TO_GZIP_BYTES: Final = 32 * 1024
_RECORDS_PER_STEP: Final = 1_000


def is_heavy(data: memoryview, config: LogConfig) -> bool:
    """Whether a client's batch is too much to be checked while everybody waits. What is not a batch that
    could be appended is not: it is refused by its header.
    """
    size = len(data)
    if size < HEADER_SIZE or size > config.max_message_bytes:
        return False
    header = HEADER.unpack_from(data)
    length, attributes, count = header[1], header[5], header[12]
    if length + LOG_OVERHEAD != size:
        return False
    codec = attributes & COMPRESSION_MASK
    wanted = CODEC_BY_CONFIG_NAME.get(config.compression_type, codec)
    if not config.compact and codec == wanted:
        return False
    if config.compact and count > _LIGHT_RECORDS_MAX:
        return True
    if codec == wanted == Codec.NONE:
        return False
    if codec != wanted == Codec.GZIP and size > _LIGHT_TO_GZIP_BYTES:
        return True
    return size > _LIGHT_TO_OPEN_BYTES.get(codec, 0)


class HeavyBatch:
    """The steps, in their order. `open` and `recompress` are compiled code on large memory, for a thread;
    `check_some` is Python, which in a thread would hold up everybody all the same, so it goes in short steps.
    """

    __slots__ = ("_config", "_data", "_error", "_keys", "_partition", "_ready")

    def __init__(self, data: memoryview, config: LogConfig, partition: str) -> None:
        self._data = data
        self._config = config
        self._partition = partition
        self._keys: KeyCheck | None = None
        self._error: KafkaError | None = None
        self._ready = False

    @property
    def wants_keys(self) -> bool:
        """Whether its keys are to be seen: `open` and `check_some` are for that."""
        return self._config.compact

    def open(self) -> None:
        """Have the records at hand."""
        try:
            self._keys = KeyCheck(*opened(self._data, self._config, self._partition), self._partition)
        except KafkaError as error:
            self._error = error

    def check_some(self) -> bool:
        """Look at some keys; whether more are left."""
        if self._keys is None:
            return False
        try:
            if self._keys.go_on(_RECORDS_PER_STEP):
                return True
        except KafkaError as error:
            self._error = error
        self._keys = None
        return False

    @property
    def wants_compression(self) -> bool:
        """Whether the topic has one of its own, and the batch is good so far."""
        return self._error is None and self._config.compression_type != "producer"

    def recompress(self) -> None:
        """Have the records in the topic's compression."""
        try:
            self._data = recompress(self._data, self._config, self._partition)
        except KafkaError as error:
            self._error = error

    def finish(self) -> None:
        """All steps are done that are wanted."""
        self._ready = True

    def result(self, config: LogConfig) -> memoryview | None:
        """The batch as a topic with these settings stores it, or KafkaError with its refusal; None when a
        step is missing, or the settings have changed since.
        """
        if config is not self._config or not self._ready:
            return None
        if self._error is not None:
            raise self._error
        return self._data
