"""The shell of the metadata quorum: what the raft core decides is done here, on disk and over connections."""
