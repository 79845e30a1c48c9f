"""Stores in the project's own database, through Django: SQLite, PostgreSQL, MySQL, MariaDB."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django_helisched.stores.orm.channels import Herald, channel_of
from django_helisched.stores.orm.clock import database_clock
from django_helisched.stores.orm.connection import prepare_process

if TYPE_CHECKING:
    from django_helisched.stores.orm.crons import OrmCronStore
    from django_helisched.stores.orm.jobs import OrmJobStore

__all__ = ["Herald", "OrmCronStore", "OrmJobStore", "channel_of", "database_clock", "prepare_process"]

_HOMES = {"OrmCronStore": "crons", "OrmJobStore": "jobs"}  # each with many modules behind it, that few processes need


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
