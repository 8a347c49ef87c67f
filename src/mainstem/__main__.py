"""`python -m mainstem`: the same as the `mainstem` command. It must never hold any logic of its own, but that
a Ctrl-C is quiet from the first import on.
"""

import sys

try:
    from mainstem.cli.main import main
except KeyboardInterrupt:
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
