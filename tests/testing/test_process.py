"""`Broker()`: a broker process for the length of a block."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mainstem.testing import Broker, BrokerError


def send(broker: Broker, value: str, topic: str = "t") -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value=value)
    assert producer.flush(30) == 0


def receive(broker: Broker, count: int, topic: str = "t") -> list[str]:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused"}
    # There is no group to commit to; a client that waits for one does so for 45 s.
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is None:
            values.append((message.value() or b"").decode())
    consumer.close()
    return values


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_broker_serves_for_the_length_of_the_block() -> None:
    with Broker() as broker:
        assert broker.running
        assert broker.bootstrap_servers == f"{broker.host}:{broker.port}"
        pid, data_dir = broker.pid, broker.data_dir
        send(broker, "hello")
        assert receive(broker, 1) == ["hello"]
        assert (data_dir / "t-0").is_dir()
    assert is_gone(pid)
    assert not data_dir.exists()
    assert not broker.running


def test_settings_reach_the_broker() -> None:
    with Broker({"num.partitions": 3, "auto.create.topics.enable": True}) as broker:
        send(broker, "x", "three")
        assert len(list(broker.data_dir.glob("three-*"))) == 3


def test_a_given_data_directory_stays(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        send(broker, "kept")
    with Broker(data_dir=tmp_path / "data") as broker:
        assert receive(broker, 1) == ["kept"]


def test_a_restart_keeps_port_and_data() -> None:
    with Broker() as broker:
        port, pid = broker.port, broker.pid
        send(broker, "one")
        broker.restart()
        assert broker.port == port
        assert broker.pid != pid
        send(broker, "two")
        assert receive(broker, 2) == ["one", "two"]


def test_a_killed_broker_starts_again_with_what_it_acknowledged() -> None:
    with Broker() as broker:
        send(broker, "before")
        broker.kill()
        assert not broker.running
        broker.start()
        assert receive(broker, 1) == ["before"]


def test_the_log_can_be_read() -> None:
    with Broker({"num.replica.fetchers": 2}) as broker:
        assert "WARNING num.replica.fetchers: Mainstem does not act on this setting yet" in broker.log


def test_a_refused_start_tells_why(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r"(?s)exit code 1.*num\.partitions"), Broker({"num.partitions": 0}):
        pass


def test_what_is_not_running_says_so() -> None:
    broker = Broker()
    with pytest.raises(BrokerError, match="not started"):
        _ = broker.bootstrap_servers
    with pytest.raises(BrokerError, match="not running"):
        _ = broker.pid
    with pytest.raises(BrokerError, match="not running"):
        broker.stop()
    broker.close()


def test_it_dies_with_its_parent_and_leaves_nothing() -> None:
    program = (
        "import sys\n"
        "from mainstem.testing import Broker\n"
        "broker = Broker().start()\n"
        "print(broker.pid, broker.data_dir, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid, _, data_dir = parent.stdout.readline().strip().partition(" ")
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 30
    while not (is_gone(int(pid)) and not Path(data_dir).exists()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_importing_it_imports_nothing_of_the_broker() -> None:
    program = (
        "import sys, mainstem.testing; print([m for m in sys.modules if m.startswith('mainstem.broker')])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "[]\n"
