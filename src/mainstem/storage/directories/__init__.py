"""Log directories: what identifies one, the logs of all partitions in them, and moves from one to another."""
