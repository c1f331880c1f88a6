"""Wiring of the processes: which parts run together, with which settings."""
