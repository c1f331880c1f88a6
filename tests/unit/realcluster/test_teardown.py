from pathlib import Path

from realcluster.teardown import mounts_below

MOUNTINFO = """\
22 1 254:0 / / rw - ext4 /dev/vda rw
40 22 0:30 / /tmp/dragoon-a/k0/pods/1/volumes/token rw - tmpfs tmpfs rw
41 22 0:31 / /tmp/dragoon-a/node0/run/task/rootfs rw - overlay overlay rw
42 41 0:32 / /tmp/dragoon-a/node0/run/task/rootfs/with\\040space rw - tmpfs tmpfs rw
43 22 0:33 / /tmp/dragoon-ab/node0/run rw - tmpfs tmpfs rw
"""


def test_mounts_of_this_folder_only_and_inner_ones_first() -> None:
    assert mounts_below(Path("/tmp/dragoon-a"), MOUNTINFO) == [
        "/tmp/dragoon-a/node0/run/task/rootfs/with space",
        "/tmp/dragoon-a/node0/run/task/rootfs",
        "/tmp/dragoon-a/k0/pods/1/volumes/token",
    ]
