"""The cluster's metadata on this node: the log of it, and the controller that decides on it."""
