"""Record batches: their header, the records inside them, and their compression.

Pure functions over bytes. Nothing here knows of files, sockets or time.
"""
