"""Requests that a client may send to any broker and that the controller decides: they go on as they came."""
