"""The cluster that a command talks to: how to reach it, what is there, and what its errors mean."""
