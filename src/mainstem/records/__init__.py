"""Record batches: their header, the records inside them, and their compression.

Pure functions over bytes. Nothing here knows of files, sockets or time; only `columnar`, which keeps its
compiled code in a cache, and stamps records that come without a time.
"""
