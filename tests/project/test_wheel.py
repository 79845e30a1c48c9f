from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "django_helisched"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built).namelist()


def test_wheel_holds_the_package_and_its_own_metadata_and_nothing_else(wheel):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    rooms = {name.split("/")[0] for name in wheel}
    assert rooms == {"django_helisched", f"django_helisched-{version}.dist-info"}


def test_wheel_holds_every_file_of_the_package(wheel):
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel if name.startswith("django_helisched/")} == sources


@pytest.mark.parametrize("name", ["py.typed", "migrations/0001_initial.py"])
def test_wheel_holds(wheel, name):
    assert f"django_helisched/{name}" in wheel


@pytest.mark.parametrize("room", ["templates", "static"])
def test_wheel_holds_what_the_admin_shows(wheel, room):
    assert any(name.startswith(f"django_helisched/{room}/") for name in wheel)
