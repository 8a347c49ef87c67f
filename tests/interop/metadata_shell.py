"""What Apache Kafka's kafka-shell shows of a file of the metadata, and what it would show of our image."""

import subprocess
from contextlib import suppress
from pathlib import Path

from mainstem.cluster.features import KRAFT_VERSION, METADATA_VERSION
from mainstem.cluster.image import BrokerImage, ControllerImage, MetadataImage, PartitionImage
from mainstem.cluster.releases import release_name
from mainstem.protocol.resources import ConfigResourceType
from mainstem.protocol.uuids import uuid_to_text
from tests.support.group_views import until
from tests.support.kafka_peer import kafka_tool

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
RECOVERY = ("RECOVERED", "RECOVERING")
Shown = dict[str, str]


def shown(path: Path) -> Shown:
    """Every value that `tree` prints of a snapshot, by its path below /image.

    It may print before it has read, or wait for more than there is: then it is asked again.
    """
    found: Shown = {}

    def has_read() -> bool:
        with suppress(subprocess.TimeoutExpired):
            arguments = ("--snapshot", str(path), "tree", "/image")
            result = kafka_tool("org.apache.kafka.shell.MetadataShell", *arguments, timeout_seconds=15)
            found.update(_values(result.check()))
        return found.get("features/metadataVersion", "Optional.empty") != "Optional.empty"

    until(has_read, f"{path} to be read")
    return found


def _values(tree: str) -> Shown:
    found: Shown = {}
    names: list[str] = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        del names[depth:]
        if line.endswith(":"):
            names.append(line.strip()[:-1])
        elif names:  # else it is a line of its log
            found["/".join(names)] = line.strip()
    return found


def rendered(image: MetadataImage) -> Shown:
    """The brokers, controllers, settings, features, producer ids and topics of an image, in its words."""
    values: Shown = {"producerIds/nextProducerId": str(image.next_producer_id or -1)}
    values |= {f"cluster/brokers/{each.broker_id}": _broker(each) for each in image.brokers.values()}
    values |= {
        f"cluster/controllers/{each.controller_id}": _controller(each) for each in image.controllers.values()
    }
    for (kind, name), configs in image.configs.items():
        place = f"configs/{ConfigResourceType(kind).name}{':' + name if name else ''}"
        values |= {f"{place}/{key}": value for key, value in configs.items()}
    for name, level in image.features.items():
        if name not in (METADATA_VERSION, KRAFT_VERSION):
            values[f"features/finalized_{name}"] = str(level)
    values["features/metadataVersion"] = f"Optional[{release_name(image.features[METADATA_VERSION])}]"
    for topic in image.topics_by_name.values():
        topic_id = uuid_to_text(topic.topic_id)
        for place in (f"topics/byName/{topic.name}", f"topics/byId/{topic_id}"):
            values |= {f"{place}/name": topic.name, f"{place}/id": topic_id}
            values |= {f"{place}/{part.partition}": _partition(part) for part in topic.partitions}
    return values


def comparable(values: Shown) -> Shown:
    """What an image says without where in the log it ends."""
    return {name: value for name, value in values.items() if not name.startswith("provenance")}


def _ids(values: tuple[bytes, ...]) -> str:
    return f"[{', '.join(uuid_to_text(value) for value in values)}]"


def _node(image: BrokerImage | ControllerImage) -> tuple[str, str]:
    endpoints = ", ".join(
        f"Endpoint(listenerName='{each.name}', securityProtocol={PROTOCOLS[each.security_protocol]}, "
        f"host='{each.host}', port={each.port})"
        for _, each in sorted(image.endpoints.items())
    )
    features = ", ".join(
        f"{name}: {level.first}-{level.last}" for name, level in sorted(image.features.items())
    )
    return f"listeners=[{endpoints}]", f"supportedFeatures={{{features}}}"


def _broker(image: BrokerImage) -> str:
    listeners, features = _node(image)
    rack = "Optional.empty" if image.rack is None else f"Optional[{image.rack}]"
    cordoned = "null" if image.cordoned_log_dirs is None else _ids(image.cordoned_log_dirs)
    return (
        f"BrokerRegistration(id={image.broker_id}, epoch={image.epoch}, "
        f"incarnationId={uuid_to_text(image.incarnation_id)}, {listeners}, {features}, rack={rack}, "
        f"fenced={_flag(image.fenced)}, inControlledShutdown={_flag(image.in_controlled_shutdown)}, "
        f"isMigratingZkBroker=false, directories={_ids(image.log_dirs)}, cordonedDirectories={cordoned})"
    )


def _controller(image: ControllerImage) -> str:
    listeners, features = _node(image)
    return (
        f"ControllerRegistration(id={image.controller_id}, "
        f"incarnationId={uuid_to_text(image.incarnation_id)}, "
        f"zkMigrationReady={_flag(image.zk_migration_ready)}, {listeners}, {features})"
    )


def _partition(image: PartitionImage) -> str:
    return (
        f"PartitionRegistration(replicas={list(image.replicas)}, directories={_ids(image.directories)}, "
        f"isr={list(image.isr)}, removingReplicas={list(image.removing_replicas)}, "
        f"addingReplicas={list(image.adding_replicas)}, elr={list(image.eligible_leader_replicas)}, "
        f"lastKnownElr={list(image.last_known_elr)}, leader={image.leader}, "
        f"leaderRecoveryState={RECOVERY[image.leader_recovery_state]}, leaderEpoch={image.leader_epoch}, "
        f"partitionEpoch={image.partition_epoch})"
    )


def _flag(value: bool) -> str:
    return str(value).lower()
