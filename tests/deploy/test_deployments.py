"""The systemd units, the container and the Kubernetes manifests: what a parser and a shell can tell of them.

Neither systemd, Docker nor Kubernetes runs here. What they would start is started: the container's script
makes a file of settings that Mainstem takes.
"""

import configparser
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mainstem.config import load_properties, resolve

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = DEPLOY / "docker" / "compose.yaml"
SCRIPT = DEPLOY / "docker" / "start-node"
MANIFESTS = DEPLOY / "kubernetes" / "mainstem.yaml"


def settings_of(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """What the container's script gives Mainstem; what it would start only says with which arguments."""
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    (commands / "mainstem").write_text(f'#!/bin/sh\necho "$@" >>{folder}/called\n')
    (commands / "mainstem").chmod(0o755)
    file = folder / "server.properties"
    path = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "SETTINGS_FILE": str(file)}
    subprocess.run(["sh", str(SCRIPT)], env=path | environment, check=True, timeout=30)
    return load_properties(file)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_node_and_stops_it_in_order(unit: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    assert parser.sections() == ["Unit", "Service", "Install"]
    service = parser["Service"]
    assert re.fullmatch(
        r"/opt/mainstem/bin/mainstem up --config /etc/\S+ --log-format json", service["ExecStart"]
    )
    assert service["KillSignal"] == "SIGTERM"
    assert service["Restart"] == "on-failure"
    assert int(service["TimeoutStopSec"]) >= 30


def test_the_nodes_of_the_compose_file_are_one_cluster(tmp_path: Path) -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    voters: set[str] = set()
    ids = set()
    volumes = set()
    for name, service in compose["services"].items():
        folder = tmp_path / name
        folder.mkdir()
        settings = settings_of(service["environment"], folder)
        config, warnings = resolve(settings)
        assert warnings == []
        assert f"CONTROLLER://{name}:9093" in settings["advertised.listeners"]
        assert f"{config.get('node.id')}@{name}:9093" in config.get("controller.quorum.voters")
        voters.add(settings["controller.quorum.voters"])
        ids.add(config.get("node.id"))
        volumes.add(service["volumes"][0].partition(":")[0])
        called = (folder / "called").read_text()
        assert called.startswith("storage format --cluster-id JqI-kGVcTNuTOH2NvRyJ8w ")
        assert "\nup --config " in called
    assert ids == {1, 2, 3}
    assert len(voters) == 1
    assert volumes == set(compose["volumes"])


def test_the_script_takes_roles_and_leaves_a_disk_alone_when_told_so(tmp_path: Path) -> None:
    environment = {"VOTERS": "1@c:9093", "CLUSTER_ID": "x", "FORMAT": "no", "RACK": "a"}
    broker = settings_of(
        environment | {"ROLES": "broker", "HOSTNAME": "mainstem-3", "ADVERTISED": "m3"}, tmp_path
    )
    assert broker["node.id"] == "4"
    assert broker["listeners"] == "PLAINTEXT://:9092"
    assert broker["broker.rack"] == "a"
    assert "storage" not in (tmp_path / "called").read_text()
    controller = settings_of(
        environment | {"ROLES": "controller", "NODE_ID": "1", "ADVERTISED": "c"}, tmp_path
    )
    assert controller["listeners"] == "CONTROLLER://:9093"


def test_the_image_has_what_the_script_needs() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (.+) \S+$", text, re.M):
        for name in source.split():
            assert (ROOT / name).exists(), name
    assert 'ENTRYPOINT ["start-node"]' in text
    assert os.access(SCRIPT, os.X_OK)


def manifests() -> dict[str, dict[str, Any]]:
    return {f"{it['kind']}/{it['metadata']['name']}": it for it in yaml.safe_load_all(MANIFESTS.read_text())}


def test_the_manifests_fit_together() -> None:
    found = manifests()
    stateful = found["StatefulSet/mainstem"]["spec"]
    (container,) = stateful["template"]["spec"]["containers"]
    labels = stateful["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert stateful["selector"]["matchLabels"].items() <= labels.items()
    assert f"Service/{stateful['serviceName']}" in found
    for name in ("Service/mainstem", "Service/mainstem-nodes"):
        spec = found[name]["spec"]
        assert spec["selector"].items() <= labels.items()
        assert all(ports[port["targetPort"]] == port["port"] for port in spec["ports"])
    assert found["Service/mainstem-nodes"]["spec"]["clusterIP"] == "None"
    assert found["PodDisruptionBudget/mainstem"]["spec"]["maxUnavailable"] == 1
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    (claim,) = stateful["volumeClaimTemplates"]
    assert [mount["name"] for mount in container["volumeMounts"]] == [claim["metadata"]["name"]]
    assert container["envFrom"] == [{"configMapRef": {"name": "mainstem"}}]


def test_each_pod_is_one_of_the_voters(tmp_path: Path) -> None:
    found = manifests()
    stateful = found["StatefulSet/mainstem"]["spec"]
    shared = found["ConfigMap/mainstem"]["data"]
    for number in range(stateful["replicas"]):
        pod = f"mainstem-{number}"
        folder = tmp_path / pod
        folder.mkdir()
        advertised = f"{pod}.{stateful['serviceName']}"
        settings = settings_of(shared | {"HOSTNAME": pod, "ADVERTISED": advertised, "RACK": "m"}, folder)
        config, warnings = resolve(settings)
        assert warnings == []
        assert f"{config.get('node.id')}@{advertised}:9093" in config.get("controller.quorum.voters")
    assert len(config.get("controller.quorum.voters")) == stateful["replicas"]
