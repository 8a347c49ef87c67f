"""`python -m mainstem`: the same as the `mainstem` command. It must never hold any logic of its own."""

import sys

from mainstem.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
