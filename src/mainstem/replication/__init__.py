"""A partition's leader state: log end offset, high watermark, epochs, waiters. Decides only; performs no
I/O.
"""
