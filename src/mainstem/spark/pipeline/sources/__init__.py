"""The kinds of sources: one module for each, which holds all that there is to it."""

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.sources.source import Source

KINDS = kinds_in(__name__, __path__, Source, first=("topic", "file"))
