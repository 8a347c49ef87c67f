"""The transaction coordinator: who produces under a transactional id, and how its transactions end.

`coordinator.py` puts the parts together; `metadata.py` says what is known of one transactional id.
"""
