"""The cluster's metadata: Kafka's metadata records, the image they add up to, and the controller's decisions.

Everything here is sans-I/O: no clock, no randomness, no file, no socket.
"""
