"""The suffixes of a segment's files while it takes the place of others, as Kafka names them."""

from typing import Final

# Written by the process that cleans; worth nothing until it has another name.
CLEANED_SUFFIX: Final = ".cleaned"
# Complete, and about to take the place of the segments that the list beside it names.
SWAP_SUFFIX: Final = ".swap"
# The list: lines of base offset and size of the segments that are replaced. Kafka has none.
REPLACES_SUFFIX: Final = ".replaces"
