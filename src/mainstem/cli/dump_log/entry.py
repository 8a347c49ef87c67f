"""What the readers of `mainstem dump-log` yield: one dict per thing found, ready for JSON.

`type` names the kind: batch, record, damage, unused, and one per small file. Keys are only ever added.
"""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]
