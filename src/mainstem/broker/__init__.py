"""The asyncio shell: listeners, connections, request dispatch, and the I/O that the sans-I/O cores ask
for.
"""
