"""In which log directory the log of a partition is to be made."""

import logging
from collections.abc import Collection, Sequence

from mainstem.protocol.uuids import uuid_to_text
from mainstem.storage.directories.log_dir import LogDir
from mainstem.storage.errors import storage_error

logger = logging.getLogger(__name__)


def choose_dir(
    name: str,
    dirs: Sequence[LogDir],
    cordoned: Collection[LogDir],
    directory_id: bytes | None,
    *,
    is_new: bool,
    may_begin_again: bool,
) -> LogDir:
    """The directory that it is known to be in, else the one with the fewest partitions. KafkaError where what
    it held may lie in a directory that is offline; see `LogManager.create`.
    """
    online = [log_dir for log_dir in dirs if log_dir.health.failure is None]
    if directory_id is not None:
        for log_dir in online:
            if log_dir.meta is not None and log_dir.meta.directory_id == directory_id:
                return log_dir
        place = f"the log directory with the id {uuid_to_text(directory_id)}"
        if not may_begin_again or len(online) < len(dirs):
            raise storage_error(f"{name} is in {place}, which is not there")
        logger.info("%s begins again, empty: it was in %s, which is gone", name, place)
    if not online:
        raise storage_error("every log directory is offline; look into the log of the broker for the reason")
    offline = [str(log_dir.path) for log_dir in dirs if log_dir.health.failure is not None]
    if offline and not is_new:
        raise storage_error(f"{name} is not there, and may be in an offline directory: {', '.join(offline)}")
    usable = [log_dir for log_dir in online if log_dir not in cordoned]
    # Where all are cordoned, the controller makes nothing new; what there is must be somewhere.
    return min(usable or online, key=lambda candidate: candidate.partition_count)
