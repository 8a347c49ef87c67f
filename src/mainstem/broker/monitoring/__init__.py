"""What can be seen of a running node: metrics for Prometheus, health, and the port they are served on.

Nothing here is loaded or counted unless a metrics port was asked for.
"""
