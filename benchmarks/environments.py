"""A virtual environment for each peer, under .bench/, made when it is missing or when what is asked for changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.peers import Peer

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".bench"
# The same for everybody, so that nobody wins by a newer Django.
COMMON = ("Django>=6.0,<6.1", "psycopg[binary]==3.3.9")
FOR_MARIADB = ("mysqlclient>=2.2.1",)


def python_of(peer: Peer, *, quiet: bool = False) -> Path:
    """Return the interpreter of the peer's environment; make it first where it is missing."""
    wanted = [interpreter(), *COMMON, *(FOR_MARIADB if "mariadb" in peer.databases else ()), *peer.requirements]
    # Plain SQL has nothing of its own to install.
    name = peer.name if peer.requirements else "plain-sql"
    place = HOME / "environments" / name
    stamp, python = place / "wanted", place / "bin" / "python"
    if stamp.exists() and stamp.read_text() == "\n".join(wanted):
        return python
    if not quiet:
        print(f"benchmarks: making the environment {name}", flush=True)
    shutil.rmtree(place, ignore_errors=True)
    _run(wanted[0], "-m", "venv", str(place))
    _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted[1:])
    stamp.write_text("\n".join(wanted))
    return python


def interpreter() -> str:
    """Return the Python of all environments: BENCH_PYTHON, or the newest that starts; some peers need 3.12."""
    asked = os.environ.get("BENCH_PYTHON")
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    names = (
        [asked] if asked else ["python3.12", *map(str, sorted(installed.glob("3.12*/bin/python3.12"))), "python3.13"]
    )
    for name in names:
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    raise SystemExit(
        f"benchmarks: no Python starts among {', '.join(names)}; name one of 3.12 or newer by BENCH_PYTHON."
    )


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"benchmarks: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
