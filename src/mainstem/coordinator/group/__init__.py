"""Consumer groups: membership in both protocols, and committed offsets, as one machine per partition of
`__consumer_offsets`.
"""
