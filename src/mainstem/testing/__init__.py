"""Mainstem for tests and programs: on free ports, in a temporary directory, gone when you are.

    from mainstem.testing import Broker, Cluster

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

The broker runs in a process of its own; `Broker.in_process()` runs it inside an asyncio program instead.
`Cluster(nodes=3)` is several of them that can be killed and started.
"""

from typing import TYPE_CHECKING, Any

from mainstem.testing.errors import BrokerError
from mainstem.testing.process import Broker

if TYPE_CHECKING:
    from mainstem.testing.cluster import Cluster

__all__ = ["Broker", "BrokerError", "Cluster"]


def __getattr__(name: str) -> Any:
    """What only a cluster needs is not imported into every run of pytest."""
    if name == "Cluster":
        from mainstem.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__} has no attribute {name}")
