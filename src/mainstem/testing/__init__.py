"""A Mainstem broker for tests and programs: on a free port, in a temporary directory, gone when you are.

    from mainstem.testing import Broker

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

The broker runs in a process of its own; `Broker.in_process()` runs it inside an asyncio program instead.
"""

from mainstem.testing.errors import BrokerError
from mainstem.testing.process import Broker

__all__ = ["Broker", "BrokerError"]
