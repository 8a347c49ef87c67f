"""Sockets: listeners, connections, the buffers they share, and what goes out through them."""
