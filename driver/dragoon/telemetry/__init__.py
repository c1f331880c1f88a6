"""Logs, metrics and the health endpoint of the two processes."""
