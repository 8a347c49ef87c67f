"""The files of the repository, for tests that look at all of them."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def files(*patterns: str) -> dict[str, str]:
    """The texts of the files that belong to the repository, by path; binary ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    texts: dict[str, str] = {}
    for name in listed.stdout.splitlines():
        try:
            texts[name] = (ROOT / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    return texts
