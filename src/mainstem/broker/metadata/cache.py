"""The newest metadata that everything on this node agrees with, and what was made from it to be used again.

Request handlers, coordinators and whoever else wants to know of topics and brokers looks here, and nowhere
else. It is the image whose logs are made and whose settings are in force, so it may be some changes behind
what the metadata log has.
"""

from typing import Any

from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage


class MetadataCache:
    """One publisher of the loader."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.generation = 0  # counts the changes, for whatever is remembered across requests
        self.answers: dict[Any, Any] = {}

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self.image = image
        self.forget()

    def forget(self) -> None:
        """What was made from image and logs is no longer right."""
        self.generation += 1
        self.answers.clear()
