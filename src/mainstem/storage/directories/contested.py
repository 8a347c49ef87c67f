"""Partitions that are in two directories: which folder is the partition's, and what becomes of the other."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mainstem.protocol.resources import TopicPartition
from mainstem.storage.directories.log_dir import DELETE_SUFFIX, STRAY_SUFFIX, LogDir
from mainstem.storage.directories.moving import superseded
from mainstem.storage.errors import LogDirInvalidError
from mainstem.storage.files.checkpoints import read_partition_metadata
from mainstem.storage.files.files import Files

_Place = tuple[LogDir, Path]


class Superfluous(NamedTuple):
    """A folder that must not stay under its name; `suffix` says whether its files go or stay."""

    log_dir: LogDir
    folder: Path
    partition: TopicPartition
    suffix: str


def superfluous_folders(
    files: Files,
    folders: Mapping[LogDir, Mapping[TopicPartition, Path]],
    topic_id_of: Callable[[str], bytes | None],
) -> Iterator[Superfluous]:
    """What a move had copied elsewhere when it ended goes. What is of an earlier topic of that name, in a
    directory that was away when it was deleted, is set aside. LogDirInvalidError for anything else: nobody
    here can say which of the two is right.
    """
    places_of: dict[TopicPartition, list[_Place]] = {}
    for log_dir, found in folders.items():
        for partition, folder in found.items():
            places_of.setdefault(partition, []).append((log_dir, folder))
    for partition, places in places_of.items():
        if len(places) == 1:
            continue
        earlier = _of_earlier_topics(files, places, topic_id_of(partition[0]))
        for place in earlier:
            yield Superfluous(*place, partition, STRAY_SUFFIX)
        left = [place for place in places if place not in earlier]
        if len(left) == 1:
            continue
        former = superseded(files, left)
        if former is None:
            raise LogDirInvalidError(
                f"partition {partition[0]}-{partition[1]} is in {left[0][0].path} and {left[1][0].path}"
            )
        yield Superfluous(*former, partition, DELETE_SUFFIX)


def _of_earlier_topics(files: Files, places: list[_Place], topic_id: bytes | None) -> list[_Place]:
    """Those that say that they are of another topic, provided that one is of the topic of today."""
    ids = [read_partition_metadata(files, folder) for _, folder in places]
    if topic_id is None or topic_id not in ids:
        return []
    return [place for place, said in zip(places, ids, strict=True) if said not in (None, topic_id)]
