"""How a driver hears that another process has stored something, or canceled it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections

from django_helisched.driver.waking.ear import Ear
from django_helisched.driver.waking.file import FileEar
from django_helisched.driver.waking.listening import Listening
from django_helisched.driver.waking.notify import NotifyEar
from django_helisched.stores.orm.channel_datagram import file_of

if TYPE_CHECKING:
    from django_helisched.driver.config import DriverConfig

__all__ = ["Ear", "Listening", "ear_of"]


def ear_of(config: DriverConfig) -> Ear | None:
    """Return what hears the words of this database; None: there are none, and the driver polls."""
    connection = connections[config.database]
    if connection.vendor == "postgresql":
        return NotifyEar(config.database)
    file = file_of(connection)
    return None if file is None else FileEar(file, config.database, config.poll_min.total_seconds())
