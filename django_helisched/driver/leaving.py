"""What a driver that was told twice to stop still tries to do on its way out."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from django_helisched.driver import connections

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("django_helisched.driver")

GOODBYE = 2.0  # seconds: a person who pressed Ctrl-C twice does not wait longer


def within(seconds: float, work: Callable[[], object]) -> None:
    """Do ``work`` in a thread of its own and return when it is done, or after so many seconds without it."""
    thread = threading.Thread(target=_quietly, args=(work,), name="helisched-goodbye", daemon=True)
    thread.start()
    thread.join(timeout=seconds)


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        logger.debug("Not done on the way out; leases lapse, and rows grow old by themselves.", exc_info=True)
    finally:
        connections.drop_all()
