"""Compaction: of all records with the same key only the latest stays.

The broker chooses a log and swaps the result in (`selection`, `jobs`, `swap`); a child process does the work
between (`worker`). Only the child loads numba: nothing that the broker imports
from here may import `cleaning` or what stands below it.
"""
