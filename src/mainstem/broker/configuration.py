"""The settings of this broker as they are in force: those it was started with, and what was altered since."""

import logging
from collections.abc import Callable

from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage
from mainstem.config import BrokerConfig, with_altered
from mainstem.protocol.resources import ConfigResourceType

logger = logging.getLogger(__name__)

Subscriber = Callable[[MetadataImage], None]


class Configuration:
    """The first publisher: logs are made, and coordinators begin, with the settings of the same moment."""

    def __init__(self, node_id: int, config: BrokerConfig) -> None:
        self._node_id = node_id
        self._subscribers: list[Subscriber] = []
        self.current = config
        self._image: MetadataImage | None = None

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell whoever does not look here each time; the settings may be those of an image to come."""
        self._subscribers.append(subscriber)

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        if changes.alters_brokers and image is not self._image:
            self.take(image)

    def take(self, image: MetadataImage) -> None:
        """Have the image's settings in force."""
        self._image = image
        self.current, problems = with_altered(
            self.current,
            image.config(ConfigResourceType.BROKER, str(self._node_id)),
            image.config(ConfigResourceType.BROKER, ""),
        )
        for problem in problems:
            logger.warning(problem)
        for subscriber in self._subscribers:
            subscriber(image)
