"""`mainstem storage`: a node's directories before its first start."""
