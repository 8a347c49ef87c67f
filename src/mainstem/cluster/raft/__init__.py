"""The quorum that owns the metadata log (KRaft), as one state machine: events in, effects out. Sans I/O."""
