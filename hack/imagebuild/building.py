"""Build the image from its three layers: Debian's Python, the dependencies, the project."""

from pathlib import Path

from imagebuild import application, archive, base, bytecode, dockerfile
from imagebuild.archive import Image
from imagebuild.layers import Layer, Store, tree_digest

_HERE = Path(__file__).resolve().parent
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def build(sources: Path, target: Path, name: str, store: Store) -> Image:
    """Write the archive of an image of this name; layers that the store has are taken from there.

    sources: a snapshot of a checkout. Raises ClusterError: a tool that is missing, a package that
    cannot be fetched.
    """
    layers = _layers(sources, store)
    described = dockerfile.described((sources / "Dockerfile").read_text("utf-8"))
    described.environment.setdefault("PATH", _PATH)
    return archive.write(target, name, layers, described, store.epoch)


def _layers(sources: Path, store: Store) -> list[Layer]:
    store.folder.mkdir(parents=True, exist_ok=True)
    with store.scratch() as scratch:
        packages = base.resolve(scratch)
        ours = tree_digest(*sorted(_HERE.glob("*.py")))
        system = store.layer(
            "base", packages.key + ours, lambda root: _base(packages, root, scratch)
        )
        unused = dockerfile.unused(_HERE / "unused.txt")
        wanted = application.requirements(sources)

        def dependencies(root: Path) -> None:
            application.fill_dependencies(root, scratch, wanted=wanted, python=packages.python)
            application.leave_out(root, unused)
            bytecode.compile_beside(system, root, scratch / "beside-1", application.APP)

        def project(root: Path) -> None:
            application.fill_project(root, scratch, sources, store.epoch)
            bytecode.compile_beside(system, root, scratch / "beside-2", application.APP)

        python = [system.digest, packages.python, ours]
        return [
            system,
            store.layer("dependencies", repr([*python, wanted, unused]), dependencies),
            store.layer("project", repr([*python, tree_digest(sources)]), project),
        ]


def _base(packages: base.Base, root: Path, scratch: Path) -> None:
    base.fill(packages, root, scratch)
    bytecode.compile_below(root, f"usr/lib/python{packages.python}")
