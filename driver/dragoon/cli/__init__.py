"""The commands and their output: data on stdout, the rest on stderr."""
