"""`python -m dragoon` is `dragoon`."""

from dragoon.cli.main import main

main()
