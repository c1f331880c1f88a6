"""What stays for good is left out of collections; in a process of its own, for it is for good."""

import subprocess
import sys

_SCRIPT = """
import gc, weakref
from dragoon.app.heap import settle_heap

class Node: pass

def cycle():
    node = Node(); node.itself = node
    return weakref.ref(node)

lost = cycle()
kept = [Node() for _ in range(1000)]
settle_heap()
assert lost() is None
assert gc.get_freeze_count() > 1000
assert not any(isinstance(one, Node) for one in gc.get_objects())
later = cycle()
gc.collect()
assert later() is None
print(gc.get_threshold()[0])
"""


def test_what_is_there_after_the_start_is_not_walked_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 10_000
