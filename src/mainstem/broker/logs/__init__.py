"""The partitions that this node holds, and what is done to their logs in the background."""
