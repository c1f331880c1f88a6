"""`dragoon why`: another name of `dragoon explain`."""

import copy

from dragoon.cli import explain

command = copy.copy(explain.command)
command.hidden = True
