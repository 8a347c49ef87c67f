"""The kinds of steps: one module for each, which holds all that there is to it."""

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.steps.step import Step

_FIRST = ("sql", "python", "watermark", "deduplicate", "aggregate", "join", "stateful")
KINDS = kinds_in(__name__, __path__, Step, first=_FIRST)
