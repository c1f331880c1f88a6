"""The one error of this tool: a sentence for the person at the terminal."""


class ClusterError(Exception):
    """Something the user has to know; printed without a traceback."""
