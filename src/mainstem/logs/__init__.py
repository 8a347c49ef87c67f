"""The broker's own log: one line for each event, for a person on a terminal and as JSON for everything else.

At the bottom of the house: whoever logs may say with `about` what an event is about. Nothing is logged for a
request that is served.
"""

from mainstem.logs.fields import about
from mainstem.logs.setup import configure

__all__ = ["about", "configure"]
