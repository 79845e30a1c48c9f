"""Run a supervisor: from the command line of this process to the one of its children."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured
from django.utils.autoreload import get_child_arguments

from django_helisched.driver.events import Announcer
from django_helisched.driver.pulse import Shown, showing
from django_helisched.driver.supervisor import Supervisor
from django_helisched.driver.vitals import longest_silence

if TYPE_CHECKING:
    from django_helisched.driver.config import DriverConfig


def supervise(count: int, config: DriverConfig, where: Shown) -> int:
    """Keep ``count`` processes of this command line running until told to stop, and return the exit code.

    Raises ImproperlyConfigured where there is no such command line.
    """
    supervisor = Supervisor(count, command_line(), Announcer(), longest_silence=longest_silence(config))
    with showing(supervisor.status, where):
        return supervisor.run()


def command_line() -> list[str]:
    """Return how this process was started, interpreter and its options included."""
    if os.name != "posix":
        raise ImproperlyConfigured("--processes needs a POSIX system; elsewhere start runscheduler several times.")
    if "runscheduler" not in sys.argv[1:2]:
        raise ImproperlyConfigured(
            "--processes starts this command line several times: call runscheduler from a shell, not by call_command."
        )
    return get_child_arguments()
