"""A whole cluster on one machine: what each of its nodes is told, where its data is, and its processes.

`mainstem up --nodes` and `mainstem.testing.Cluster` both stand on it, so that there is one way to make one.
It imports nothing of the broker: nodes are processes of their own.
"""
