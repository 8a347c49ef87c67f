"""Metrics and how they are shown: histograms, and Prometheus' text format. No clock and no I/O here.

At the bottom of the house, so that the storage, the broker and the pipeline may all use it.
"""

from mainstem.metrics.exposition import CONTENT_TYPE, Exposition, Family, label
from mainstem.metrics.histogram import TimeHistogram, add_histogram

__all__ = [
    "CONTENT_TYPE",
    "Exposition",
    "Family",
    "TimeHistogram",
    "add_histogram",
    "label",
]
