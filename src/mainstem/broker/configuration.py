"""The settings of this broker as they are in force: those it was started with, and what was altered since."""

import logging
from collections.abc import Callable

from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage
from mainstem.config import BrokerConfig, with_altered
from mainstem.protocol.resources import ConfigResourceType

logger = logging.getLogger(__name__)

Reconfigured = Callable[[MetadataImage], None]


class Configuration:
    """The first publisher: logs are made, and coordinators begin, with the settings of the same moment."""

    def __init__(self, node_id: int, config: BrokerConfig, reconfigured: Reconfigured) -> None:
        """`reconfigured` tells whoever does not look here each time."""
        self._node_id = node_id
        self._reconfigured = reconfigured
        self.current = config

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        if changes.alters_brokers:
            self.take(image)

    def take(self, image: MetadataImage) -> None:
        """Have the image's settings in force."""
        self.current, problems = with_altered(
            self.current,
            image.config(ConfigResourceType.BROKER, str(self._node_id)),
            image.config(ConfigResourceType.BROKER, ""),
        )
        for problem in problems:
            logger.warning(problem)
        self._reconfigured(image)
