"""Raising and lowering the levels of a cluster's features, as kafka-features does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainstem import __version__
from mainstem.cli.cluster.status import METADATA_VERSION
from mainstem.cli.clusters.each_broker import ask_each
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import print_table
from mainstem.cli.streams import say
from mainstem.cli.typed.pairs import parse_pairs
from mainstem.cluster.releases import first_levels, release_level, release_name
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.wire import Cluster, Connection


def show_features(cluster: Cluster) -> None:
    """What every broker supports, and what is finalized."""
    ranges: dict[str, tuple[int, int]] = {}
    finalized: dict[str, int] = {}
    addresses = cluster.brokers()
    answers = ask_each(cluster.options, addresses, _ask)
    for answer in answers.values():
        for key in answer.supported_features:
            low, high = ranges.get(key.name, (key.min_version, key.max_version))
            ranges[key.name] = max(low, key.min_version), min(high, key.max_version)
        finalized.update({key.name: key.max_version_level for key in answer.finalized_features})
    rows = [
        (name, _text(name, low), _text(name, high), _text(name, finalized.get(name, 0)))
        for name, (low, high) in sorted(ranges.items())
    ]
    print_table(("feature", "supported from", "to", "finalized"), rows)
    for node_id in sorted(addresses.keys() - answers.keys()):
        say(f"mainstem: node {node_id} does not answer, and may support less")


def _ask(_node_id: int, connection: Connection) -> ApiVersionsResponse:
    answer: ApiVersionsResponse = connection.call(ApiVersionsRequest("mainstem", __version__))
    return answer


def wanted_levels(release: str | None, features: Sequence[str]) -> dict[str, int]:
    """The levels that the options ask for."""
    if (release is None) == (not features):
        raise CommandError("which levels?", "give either --release-version or --feature", 2)
    if release is not None:
        level = release_level(release)
        if level is None:
            raise CommandError(f"there is no release {release}", "write it as 4.3 or 4.3-IV0", 2)
        return first_levels(level)
    return {name: _level(name, text) for name, text in parse_pairs(features, "--feature")}


def finalized_levels(cluster: Cluster) -> dict[str, int]:
    """As a broker tells them that answers."""
    answers = ask_each(cluster.options, cluster.brokers(), _ask)
    return {
        key.name: key.max_version_level for answer in answers.values() for key in answer.finalized_features
    }


def say_levels(before: Mapping[str, int], levels: Mapping[str, int], done: str) -> None:
    """What became of each level that was asked for."""
    for name, level in levels.items():
        is_new = before.get(name, 0) != level
        print(f"{name} {done if is_new else 'is already at'} {_text(name, level)}")
    if all(before.get(name, 0) == level for name, level in levels.items()):
        print("nothing has changed")


def _level(name: str, text: str) -> int:
    if name == METADATA_VERSION and (level := release_level(text)) is not None:
        return level
    if not text.isdecimal():
        raise CommandError(f"--feature {name}={text} is not a level", "give a number", 2)
    return int(text)


def _text(name: str, level: int) -> str:
    return release_name(level) if name == METADATA_VERSION and level else str(level)
