"""A process that enqueues as a web server does: threads, one transaction for each request.

``python -m tests.crash.hammer NAME`` exits 1 and prints what a user would have seen.
"""

from __future__ import annotations

import sys
import threading
import traceback

import django
from django.db import connection, transaction

THREADS = 4
REQUESTS = 15  # of each thread


def hammer(name: str) -> list[str]:
    """Answer all requests and return the errors."""
    errors: list[str] = []
    threads = [threading.Thread(target=_serve, args=(f"{name}.{number}", errors)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def markers(name: str) -> list[str]:
    """Return what the jobs of all requests write."""
    return [f"{name}.{thread}.{number}" for thread in range(THREADS) for number in range(REQUESTS)]


def _serve(name: str, errors: list[str]) -> None:
    from tests.app.models import Note
    from tests.app.tasks import record

    try:
        for number in range(REQUESTS):
            with transaction.atomic():
                # Read, then write: what an upgraded read lock would fail at.
                Note.objects.filter(text=name).count()
                Note.objects.create(text=f"{name}.{number}")
                record.enqueue(f"{name}.{number}")
    except Exception:
        errors.append(traceback.format_exc())
    finally:
        connection.close()


if __name__ == "__main__":
    django.setup()
    found = hammer(sys.argv[1])
    sys.stderr.write("\n".join(found))
    sys.exit(bool(found))
