"""What must stand before the demo runs: packages, a port, a database, tables, a user.

Every obstacle is a DemoError: one sentence for the person at the terminal.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

import crew

HOST = "127.0.0.1"
PORTS = range(8000, 8020)
VAR = Path(__file__).resolve().parent.parent / "var"
USER = "keeper"
# Two demos that migrate one empty database at the same moment: one of them has to look again.
MIGRATE_TRIES = 5


# Open files: closing one would give its lock away.
CLAIMS: list[TextIO] = []


class DemoError(Exception):
    """What keeps the demo from running, as one sentence."""


def duration() -> float | None:
    """Give DEMO_SECONDS, or None to run until somebody stops it."""
    given = os.environ.get("DEMO_SECONDS", "")
    try:
        seconds = float(given) if given else None
    except ValueError:
        seconds = -1.0
    if seconds is not None and not 0 < seconds < 1e9:
        raise DemoError(f"DEMO_SECONDS={given!r} is not a number of seconds. Try: DEMO_SECONDS=30 make demo")
    return seconds


def check_packages() -> None:
    """Raise DemoError when a package is missing, and say how to get it."""
    for name in ("django", "environ", "django_helisched"):
        if find_spec(name) is None:
            raise DemoError(
                f'the package "{name}" is not installed for {sys.executable}. '
                'Run "make demo", which installs everything into .venv.'
            )


def choose_port() -> int:
    """Give the port for the web server: DEMO_PORT, or the first free one from 8000 on."""
    given = os.environ.get("DEMO_PORT", "")
    if given:
        if not given.isdecimal() or not 0 < int(given) < 65536:
            raise DemoError(f"DEMO_PORT={given!r} is not a port number between 1 and 65535.")
        if not (is_free(int(given)) and claim(int(given))):
            raise DemoError(f"port {given} is in use on {HOST}. Stop what listens there, or choose another DEMO_PORT.")
        return int(given)
    for port in PORTS:
        if is_free(port) and claim(port):
            return port
    raise DemoError(f"all ports from {PORTS[0]} to {PORTS[-1]} are in use on {HOST}. Choose another with DEMO_PORT.")


def is_free(port: int) -> bool:
    """Say whether a server could listen on the port."""
    with socket.socket() as probe:
        # As the server itself does: a port that was closed a moment ago counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def claim(port: int) -> bool:
    """Keep the port, and the file named after it, from a second demo that starts in the same moment."""
    try:
        import fcntl

        VAR.mkdir(exist_ok=True)
        lock = (VAR / f"demo-{port}.lock").open("w")
    except (ImportError, OSError):
        return True  # Without locks, two demos have to start a moment apart.
    CLAIMS.append(lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def choose_database(port: int) -> bool:
    """Make a fresh SQLite file the database unless DATABASE_URL names one; say whether it is the demo's own.

    The file is named after the port, which two demos on one machine cannot share.
    """
    # A short lease shows within seconds how the work of a killed scheduler is taken over.
    for name, value in (("HELISCHED_LEASE", "10"), ("HELISCHED_SWEEP", "5"), ("SERVER_LOG_LEVEL", "WARNING")):
        os.environ.setdefault(name, value)
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    if os.environ.get("DATABASE_URL"):
        return False
    path = VAR / f"demo-{port}.sqlite3"
    try:
        VAR.mkdir(exist_ok=True)
        for stale in VAR.glob(f"{path.name}*"):
            stale.unlink()
    except OSError as error:
        raise DemoError(f"{VAR} cannot be written ({error.strerror}). Make it writable, or set DATABASE_URL.") from None
    os.environ["DATABASE_URL"] = f"sqlite:///{quote(str(path))}"
    return True


def prepare(*, own_file: bool) -> str:
    """Set Django up, migrate, make the demo user; give the user's password."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import DatabaseError

    try:
        import django

        django.setup()
        from django.db import connection

        connection.ensure_connection()
    except ImproperlyConfigured as error:
        raise DemoError(f"the settings do not work: {first_line(error)}{driver_hint(error)}") from None
    except DatabaseError as error:
        raise DemoError(
            f"the database of DATABASE_URL does not answer ({first_line(error)}). "
            "Start it or mend the address; without DATABASE_URL the demo uses SQLite."
        ) from None
    retry_migrate()
    return demo_user(own_file=own_file)


def first_line(error: Exception) -> str:
    """Give the error's first line, short enough for a sentence."""
    return (str(error).splitlines() or [type(error).__name__])[0].strip()[:200]


def driver_hint(error: Exception) -> str:
    """Say which driver to install, if that is what is missing."""
    for word, package in (("psycopg", "psycopg[binary]"), ("MySQLdb", "mysqlclient")):
        if word in str(error):
            return f' Run: {sys.executable} -m pip install "{package}"'
    return ""


def retry_migrate() -> None:
    """Migrate, and look again if another demo is migrating the same database right now."""
    from django.core.management import call_command
    from django.db import DatabaseError

    for attempt in range(1, MIGRATE_TRIES + 1):
        try:
            call_command("migrate", verbosity=0, interactive=False)
        except DatabaseError as error:
            if attempt == MIGRATE_TRIES:
                raise DemoError(f"the database could not be migrated: {first_line(error)}") from None
            crew.wait(1)
        else:
            return


def demo_user(*, own_file: bool) -> str:
    """Make the demo's administrator and give the password.

    The well-known password is for the demo's own file; on a database that others
    may reach it is a random one.
    """
    from django.contrib.auth import get_user_model
    from django.db import IntegrityError

    users = get_user_model().objects
    password = USER if own_file else secrets.token_urlsafe(9)
    try:
        users.create_superuser(USER, password=password)
    except IntegrityError:
        return "(the one that this database already has)"
    return password


def disconnect() -> None:
    """Close the connection: nothing stays open while the demo only waits."""
    from django.db import connections

    connections.close_all()
