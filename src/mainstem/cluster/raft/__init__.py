"""The quorum that owns the metadata log: its roles, its stored state and its control records. Sans I/O.

A quorum of one for now. What a larger one needs (votes over the network, followers that fetch) is added to
the roles; whoever uses the quorum sees only effects and the high watermark.
"""
