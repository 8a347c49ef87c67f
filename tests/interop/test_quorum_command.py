"""Apache Kafka's MetadataQuorumCommand describes and changes a quorum of Mainstem controllers."""

import asyncio
from pathlib import Path

import pytest

from mainstem.protocol.uuids import uuid_to_text
from tests.broker.harness import eventually
from tests.broker.quorum.controllers import CLUSTER, Controllers, directory_id
from tests.support.kafka_peer import kafka_tool

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]


async def _command(controllers: Controllers, *arguments: str, config: Path | None = None) -> str:
    server = f"127.0.0.1:{controllers.ports[await controllers.leader()]}"
    options = ["--bootstrap-controller", server]
    if config is not None:
        options += ["--command-config", str(config)]
    result = await asyncio.to_thread(kafka_tool, "MetadataQuorumCommand", *options, *arguments)
    return result.check()


async def _status(controllers: Controllers) -> dict[str, str]:
    lines = (await _command(controllers, "describe", "--status")).splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines if ":" in line)}


def _entry(controllers: Controllers, node_id: int) -> str:
    directory = uuid_to_text(directory_id(node_id))
    address = f"CONTROLLER://127.0.0.1:{controllers.ports[node_id]}"
    return f'{{"id": {node_id}, "directoryId": "{directory}", "endpoints": ["{address}"]}}'


async def test_the_command_describes_the_quorum_and_changes_its_voters(
    tmp_path: Path, runner: asyncio.Runner
) -> None:
    controllers = Controllers(tmp_path / "quorum", [1, 2, 3], observers=[4])
    try:
        await controllers.start()
        await controllers.write("first")
        status = await _status(controllers)
        assert (status["ClusterId"], status["LeaderId"]) == (CLUSTER, str(await controllers.leader()))
        for node_id in (1, 2, 3):
            assert _entry(controllers, node_id) in status["CurrentVoters"]
        assert f'"id": 4, "directoryId": "{uuid_to_text(directory_id(4))}"' in status["CurrentObservers"]

        replication = await _command(controllers, "describe", "--replication", "--human-readable")
        rows = [line.split() for line in replication.splitlines()[1:]]
        expected = {
            "1": "Follower",
            "2": "Follower",
            "3": "Follower",
            "4": "Observer",
            status["LeaderId"]: "Leader",
        }
        assert {row[0]: row[-1] for row in rows} == expected
        assert all("ms ago" in " ".join(row) for row in rows)

        joining = tmp_path / "joining.properties"
        settings = controllers.settings_of(4) | {"controller.listener.names": "CONTROLLER"}
        joining.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        added = await _command(controllers, "add-controller", config=joining)
        assert f"Added controller 4 with directory id {uuid_to_text(directory_id(4))}" in added
        await eventually(lambda: set(controllers.quorum(4).history.voters.ids) == {1, 2, 3, 4}, "it votes")

        gone = await controllers.leader()
        directory = uuid_to_text(directory_id(gone))
        removed = await _command(
            controllers,
            "remove-controller",
            "--controller-id",
            str(gone),
            "--controller-directory-id",
            directory,
        )
        assert f"KRaft controller {gone} with directory id {directory}" in removed
        await eventually(lambda: controllers.quorum(gone).leader_id not in (-1, gone), "another leads")
        status = await _status(controllers)
        assert _entry(controllers, gone) not in status["CurrentVoters"]
        assert f'"id": {gone}' in status["CurrentObservers"]
    finally:
        await controllers.stop()
