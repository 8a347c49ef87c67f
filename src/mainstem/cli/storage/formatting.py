"""`mainstem storage format`: from options to what is to be formatted. They mean what kafka-storage's mean."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import NamedTuple

from mainstem.broker.metadata.formatting import FormatError, Formatting, format_directories
from mainstem.broker.metadata.metadata_directory import metadata_directory
from mainstem.cli.errors import CommandError, in_two_lines
from mainstem.cli.storage.settings import directories, node_config
from mainstem.cluster.features import (
    KRAFT_VERSION,
    KRAFT_VERSION_LEVEL,
    METADATA_VERSION,
    METADATA_VERSION_LEVEL,
    SUPPORTED_FEATURES,
)
from mainstem.cluster.raft.control_records import (
    KRaftVersionFeature,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
)
from mainstem.cluster.releases import first_levels, release_level
from mainstem.config import BrokerConfig, parse_listeners
from mainstem.config.quorum import quorum_settings
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.uuids import random_uuid, uuid_from_text
from mainstem.storage.files.real_files import RealFiles


class Wanted(NamedTuple):
    """The options of one call."""

    cluster_id: str
    standalone: bool
    initial_controllers: str | None
    no_initial_controllers: bool
    ignore_formatted: bool
    release_version: str | None
    features: tuple[str, ...]


def format_node(path: Path, wanted: Wanted) -> None:
    """Format what the file names; a line for each directory."""
    config = node_config(path)
    given = (wanted.standalone, wanted.initial_controllers is not None, wanted.no_initial_controllers)
    if sum(given) > 1:
        raise CommandError(
            "--standalone, --initial-controllers and --no-initial-controllers exclude each other",
            "give one of them",
            2,
        )
    voters = _voters(config, wanted)
    formatting = Formatting(
        wanted.cluster_id, config.get("node.id"), _levels(wanted, has_voters=voters is not None), voters
    )
    try:
        for line in format_directories(
            RealFiles(),
            directories(config),
            metadata_directory(config),
            formatting,
            ignore_formatted=wanted.ignore_formatted,
            new_uuid=random_uuid,
            now_ms=time.time_ns() // 1_000_000,
        ):
            print(line)
    except FormatError as error:
        raise in_two_lines(str(error)) from None
    except OSError as error:
        raise CommandError(
            f"cannot format {error.filename or path}: {error.strerror or error}", "check who may write there"
        ) from None


def _voters(config: BrokerConfig, wanted: Wanted) -> VotersRecord | None:
    is_controller = "controller" in config.get("process.roles")
    if wanted.standalone:
        if not is_controller:
            raise CommandError("--standalone is for a controller", "give --no-initial-controllers")
        return VotersRecord(voters=[_standalone_voter(config)])
    if wanted.initial_controllers is not None:
        name = config.get("controller.listener.names")[0].upper()
        texts = wanted.initial_controllers.split(",")
        voters = [_voter(text.strip(), name) for text in texts]
        if len({voter.voter_id for voter in voters}) < len(voters):
            raise CommandError("--initial-controllers names a node twice", "give each node once", 2)
        return VotersRecord(voters=sorted(voters, key=lambda voter: voter.voter_id))
    if is_controller and not quorum_settings(config).voters and not wanted.no_initial_controllers:
        raise CommandError(
            "the file has no controller.quorum.voters, so that this controller must be told who votes",
            "give --standalone, --initial-controllers or --no-initial-controllers",
        )
    return None


def _standalone_voter(config: BrokerConfig) -> VoterEntry:
    names = [name.upper() for name in config.get("controller.listener.names")]
    listeners = {entry.name: entry for entry in parse_listeners(config, socket.gethostname())}
    found = [listeners[name] for name in names if name in listeners]
    if not found:
        raise CommandError(
            "the file has no controller's listener", "add one that controller.listener.names names"
        )
    host, port = found[0].advertised_host, found[0].advertised_port
    return _entry(config.get("node.id"), random_uuid(), VoterEndpoint(names[0], host, port))


def _voter(text: str, listener: str) -> VoterEntry:
    """`id@host:port:directory-id`, the host in brackets when it is an IPv6 address."""
    address, _, directory = text.rpartition(":")
    node_id, _, host_and_port = address.partition("@")
    host, _, port = host_and_port.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    numbers = (node_id, port)
    if not (host and all(number.isascii() and number.isdigit() for number in numbers)) or int(port) > 65535:
        raise CommandError(
            f'--initial-controllers: "{text}" is not of the form id@host:port:directory-id', exit_code=2
        )
    try:
        directory_id = uuid_from_text(directory)
    except ProtocolError as error:
        hint = "`mainstem storage random-uuid` makes one"
        raise CommandError(f"--initial-controllers: the directory id: {error}", hint, 2) from None
    return _entry(int(node_id), directory_id, VoterEndpoint(listener, host, int(port)))


def _entry(node_id: int, directory_id: bytes, endpoint: VoterEndpoint) -> VoterEntry:
    return VoterEntry(node_id, directory_id, [endpoint], KRaftVersionFeature(0, KRAFT_VERSION_LEVEL))


def _levels(wanted: Wanted, *, has_voters: bool) -> dict[str, int]:
    given = dict(_feature(text) for text in wanted.features)
    level = METADATA_VERSION_LEVEL
    if wanted.release_version is not None:
        if METADATA_VERSION in given:
            hint = "leave out one of them"
            raise CommandError(f"--release-version says {METADATA_VERSION} as --feature does", hint, 2)
        found = release_level(wanted.release_version)
        if found is None:
            hint = "3.3 to 4.3, or one of their steps such as 4.2-IV0"
            raise CommandError(f"there is no release {wanted.release_version}", hint, 2)
        level = found
    level = given.get(METADATA_VERSION, level)
    kraft_version = given.pop(KRAFT_VERSION, int(has_voters))
    if bool(kraft_version) is not has_voters:
        why = "needs --standalone or --initial-controllers" if kraft_version else "goes without first voters"
        raise CommandError(f"{KRAFT_VERSION}={kraft_version} {why}", f"leave out --feature {KRAFT_VERSION}")
    levels = first_levels(level) | given
    return {name: value for name, value in levels.items() if value}


def _feature(text: str) -> tuple[str, int]:
    name, _, level = (part.strip() for part in text.partition("="))
    if not (level.isascii() and level.isdigit()):
        raise CommandError(f'--feature: "{text}" is not of the form name=level', exit_code=2)
    supported = SUPPORTED_FEATURES.get(name)
    if supported is None:
        hint = f"there are {', '.join(SUPPORTED_FEATURES)}"
        raise CommandError(f"--feature: {name} is not supported", hint, 2)
    if not supported.first <= int(level) <= supported.last:
        hint = f"{supported.first} to {supported.last} are possible"
        raise CommandError(f"--feature: {name} has no level {level}", hint, 2)
    return name, int(level)
