"""The command line of `hack/image`."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from imagebuild.application import snapshot
from imagebuild.building import build
from imagebuild.layers import Store
from realcluster.builds import cache_folder
from realcluster.failure import ClusterError

CHECKOUT = Path(__file__).resolve().parents[2]
NAME = "dragoon.test/dragoon:local"


def store() -> Store:
    """Where layers are kept: beside the programs of the cluster, outside the repository."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    return Store(cache_folder().parent / "image", epoch)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the image, or check that building it again gives the same; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="dragoon-image-") as scratch:
            if options.check:
                return _check(Path(scratch), options.name)
            return _build(Path(scratch), options.output, options.name)
    except ClusterError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1


def _build(scratch: Path, output: Path, name: str) -> int:
    started = time.monotonic()
    image = build(snapshot(CHECKOUT, scratch / "sources"), output, name, store())
    print(f"{output}\n{name}@{image.digest}")
    for layer in image.layers:
        print(f"{layer.name:<14}{layer.size / 1e6:7.1f} MB")
    print(f"{'all':<14}{image.size / 1e6:7.1f} MB")
    print(f"{time.monotonic() - started:.1f} s", file=sys.stderr)
    return 0


def _check(scratch: Path, name: str) -> int:
    """Two builds, the second of them anew in every part."""
    sources = snapshot(CHECKOUT, scratch / "sources")
    kept = build(sources, scratch / "kept.tar", name, store())
    other = Store(scratch / "layers", store().epoch)
    again = build(sources, scratch / "again.tar", name, other)
    for one, two in zip(kept.layers, again.layers, strict=True):
        same = "the same" if one.digest == two.digest else f"DIFFERENT: {two.digest}"
        print(f"{one.name:<14}{one.digest} {same}")
    print(f"{'image':<14}{kept.digest} {again.digest}")
    return 0 if kept.digest == again.digest else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/image", description=__doc__)
    out = CHECKOUT / "out" / "dragoon-image.tar"
    parser.add_argument("--output", type=Path, default=out, help="the archive to write")
    parser.add_argument("--name", default=NAME, help="what the image is called in it")
    parser.add_argument("--check", action="store_true", help="build twice and compare")
    return parser
