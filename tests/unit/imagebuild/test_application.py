"""What of the dependencies gets into the image."""

import base64
import hashlib
from pathlib import Path

import pytest

from imagebuild.application import changed_files


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A folder with one installed wheel, whose RECORD does not say its own hash."""
    content = b"authorities"
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/all, and more.pem").write_bytes(content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    about = tmp_path / "certs-1.dist-info"
    about.mkdir()
    (about / "RECORD").write_text(
        f'"certs/all, and more.pem",sha256={digest},{len(content)}\ncerts-1.dist-info/RECORD,,\n'
    )
    return tmp_path


def test_what_is_as_its_wheel_says_has_not_changed(target: Path) -> None:
    assert changed_files(target) == []


def test_a_file_that_somebody_changed_or_removed_is_found(target: Path) -> None:
    file = target / "certs/all, and more.pem"
    file.write_bytes(b"authorities and one more")
    assert changed_files(target) == ["certs/all, and more.pem"]
    file.unlink()
    assert changed_files(target) == ["certs/all, and more.pem"]
