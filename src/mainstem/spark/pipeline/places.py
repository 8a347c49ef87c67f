"""Where a pipeline's things are: the cluster, its checkpoints, the files that it names. No Spark here."""

from __future__ import annotations

import os
from pathlib import Path as FilePath

from mainstem.spark.pipeline.model import Pipeline

DEFAULT_BOOTSTRAP = "localhost:9092"


def state_home() -> FilePath:
    """Where programs keep what must survive a restart."""
    return FilePath(os.environ.get("XDG_STATE_HOME") or FilePath.home() / ".local" / "state") / "mainstem"


class Places:
    """Answers for one pipeline. Relative paths start at the folder of its file."""

    def __init__(
        self,
        pipeline: Pipeline,
        folder: FilePath,
        *,
        bootstrap: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._folder = folder
        self._bootstrap = bootstrap
        self._checkpoint = checkpoint

    def bootstrap(self, own: str | None = None) -> str:
        """The cluster of a part; what the command line says comes before what the file says for all."""
        environment = os.environ.get("MAINSTEM_BOOTSTRAP")
        return own or self._bootstrap or self._pipeline.bootstrap or environment or DEFAULT_BOOTSTRAP

    def path(self, name: str) -> str:
        """A file or folder that the pipeline names; addresses such as s3a://... as they are."""
        if "://" in name:
            return name
        return str((self._folder / FilePath(name).expanduser()).absolute())

    @property
    def checkpoint(self) -> str:
        """The folder of the pipeline's progress."""
        given = self._checkpoint or self._pipeline.checkpoint
        if given is not None:
            return self.path(given).rstrip("/")
        return str(state_home() / "pipelines" / self._pipeline.name)

    @property
    def has_local_checkpoint(self) -> bool:
        return "://" not in self.checkpoint

    def checkpoint_of(self, query: str) -> str:
        return f"{self.checkpoint}/{query}"

    @property
    def group(self) -> str:
        return self._pipeline.group or self._pipeline.name
