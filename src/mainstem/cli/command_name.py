"""What to type to run the command, which is not on the PATH of a fresh checkout."""

from __future__ import annotations

import os
import shutil


def command_name() -> str:
    """`mainstem`, or `./mainstem` in the folder of a checkout that is not on the PATH."""
    if shutil.which("mainstem") is None and os.access("mainstem", os.X_OK):
        return "./mainstem"
    return "mainstem"


def typeable(advice: str) -> str:
    """The same advice with its commands as they can be typed in this folder."""
    return advice.replace("mainstem ", f"{command_name()} ") if "mainstem " in advice else advice
