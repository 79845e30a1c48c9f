"""Make the driver of a process, on the stores that the project uses."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from django_helisched import wiring
from django_helisched.driver.driver import Driver
from django_helisched.driver.events import log_event
from django_helisched.driver.waking import ear_of
from django_helisched.stores.orm import prepare_process

if TYPE_CHECKING:
    from django_helisched.driver.config import DriverConfig
    from django_helisched.driver.events import Observer

# Seconds for which one thread may keep the interpreter from those that wait for it, above all from one whose database
# has answered. Python's own 5 ms are several round trips, and each of them waits behind bodies that compute.
SWITCH_EVERY = 0.0005


def open_driver(config: DriverConfig, observe: Observer = log_event) -> Driver:
    """Return a driver of this process's stores; call it before the first query, which SQLite's settings shape.

    The process is given over to it: its threads also take turns more often from now on, and what is there by now
    is taken to stay.
    """
    sys.setswitchinterval(min(SWITCH_EVERY, sys.getswitchinterval()))
    prepare_process(config.database)
    driver = Driver(wiring.job_store(), wiring.cron_store(), config, observe=observe, ear=ear_of(config))
    # Django and the project's modules live as long as the process. Whenever claims have come and gone, the collector of
    # cycles would walk all of it to find so: a tenth of what short jobs cost.
    gc.freeze()
    return driver
