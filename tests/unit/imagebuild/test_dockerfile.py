"""What of the Dockerfile decides the image."""

from pathlib import Path

import pytest

from imagebuild import application, dockerfile
from realcluster.failure import ClusterError

CHECKOUT = Path(__file__).resolve().parents[3]


def test_the_last_stage_says_what_the_image_is() -> None:
    found = dockerfile.described(
        "FROM a AS build\n"
        'ENTRYPOINT ["wrong"]\n'
        "FROM b\n"
        'LABEL one="1 2" \\\n      two=2\n'
        "# USER root\n"
        "ENV PATH=/bin HOME=/\n"
        "RUN true && false\n"
        "USER 1:1\n"
        'CMD ["--help"]\n'
    )
    assert found == dockerfile.Described(
        user="1:1",
        command=["--help"],
        environment={"PATH": "/bin", "HOME": "/"},
        labels={"one": "1 2", "two": "2"},
    )


@pytest.mark.parametrize("line", ["CMD --help", "ENV PATH /bin"])
def test_what_would_need_a_shell_is_refused(line: str) -> None:
    with pytest.raises(ClusterError, match="Dockerfile"):
        dockerfile.described(f"FROM a\n{line}\n")


def test_ours_runs_the_module_as_nobody_from_the_folder_that_is_filled() -> None:
    found = dockerfile.described((CHECKOUT / "Dockerfile").read_text("utf-8"))
    assert found.entrypoint == ["python", "-m", "dragoon"]
    assert found.user == "65532:65532"
    assert found.environment["PYTHONPATH"] == f"/{application.APP}"
    assert found.labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_docker_is_given_every_file_that_the_image_is_made_of() -> None:
    allowed = (CHECKOUT / ".dockerignore").read_text("utf-8").splitlines()
    wanted = [*application.SOURCES, "hack/imagebuild/unused.txt"]
    assert [name for name in wanted if name != "Dockerfile" and f"!{name}" not in allowed] == []
