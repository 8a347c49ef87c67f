"""The controller: it decides every change of the cluster's metadata. `controller.py` is the way in; each rule
has a file of its own.
"""
