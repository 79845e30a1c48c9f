"""Databases of runs: made, copied, removed and described, by Django's connection of this process."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")
TAILS = ("", "-journal", "-shm", "-wal")


def create(database: Mapping[str, Any]) -> None:
    """Make an empty database; a file needs no making."""
    if connection.vendor != "sqlite":
        with _server() as cursor:
            cursor.execute(f"CREATE DATABASE {_name(database)}")


def copy(database: Mapping[str, Any], template: str) -> bool:
    """Make the database anew from ``template``; return False where this one cannot be copied."""
    drop(database)
    if connection.vendor == "sqlite":
        # Everything is in the file once its log was taken over.
        with sqlite3.connect(template) as source:
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        source.close()
        shutil.copyfile(template, database["NAME"])
        return True
    if connection.vendor != "postgresql":
        return False
    with _server() as cursor:
        cursor.execute(f"CREATE DATABASE {_name(database)} TEMPLATE {connection.ops.quote_name(template)}")
    return True


def drop(database: Mapping[str, Any]) -> None:
    """Remove the database, with whoever is still connected to it."""
    connection.close()
    if connection.vendor == "sqlite":
        for tail in TAILS:
            Path(database["NAME"] + tail).unlink(missing_ok=True)
        return
    with _server() as cursor:
        force = " WITH (FORCE)" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP DATABASE IF EXISTS {_name(database)}{force}")


def settle_down() -> None:
    """Give the planner its statistics, and let the writing of the backlog end before anything is measured."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE")
            cursor.execute("CHECKPOINT")
        elif connection.vendor == "sqlite":
            cursor.execute("ANALYZE")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            cursor.execute("SHOW TABLES")
            names = ", ".join(connection.ops.quote_name(row[0]) for row in cursor.fetchall())
            cursor.execute(f"ANALYZE TABLE {names}")
            cursor.fetchall()
            # What a checkpoint is elsewhere: the pages of the backlog are written before anything is measured.
            cursor.execute(f"FLUSH TABLES {names} FOR EXPORT")
            cursor.execute("UNLOCK TABLES")


@contextmanager
def snapshot() -> Iterator[None]:
    """Keep a transaction of another connection open that sees the rows as they are now."""
    begin = {
        "postgresql": ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"),
        "sqlite": ("BEGIN DEFERRED", "SELECT 1 FROM sqlite_master"),
        "mysql": ("START TRANSACTION WITH CONSISTENT SNAPSHOT",),
    }[connection.vendor]
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            for statement in begin:
                cursor.execute(statement)
        yield
    finally:
        other.close()


def vendor() -> str:
    """Return Django's word for this database."""
    return connection.vendor


def empty(table: str) -> None:
    """Remove all rows at once."""
    verb = "DELETE FROM" if connection.vendor == "sqlite" else "TRUNCATE TABLE"
    with connection.cursor() as cursor:
        cursor.execute(f"{verb} {connection.ops.quote_name(table)}")


def facts() -> dict[str, Any]:
    """Return the database's version and the settings that decide what a commit costs."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            found = {}
            for name in ("server_version", *DURABILITY):
                cursor.execute(f"SHOW {name}")
                found[name] = cursor.fetchone()[0]
            return {"database": f"PostgreSQL {found.pop('server_version').split()[0]}", **found}
        if connection.vendor == "sqlite":
            found = {"database": f"SQLite {sqlite3.sqlite_version}"}
            for name in ("journal_mode", "synchronous"):
                cursor.execute(f"PRAGMA {name}")
                found[name] = str(cursor.fetchone()[0])
            return found
        cursor.execute("SELECT version(), @@innodb_flush_log_at_trx_commit, @@sync_binlog")
        version, flush, binlog = cursor.fetchone()
        return {"database": f"MariaDB {version}", "innodb_flush_log_at_trx_commit": flush, "sync_binlog": binlog}


@contextmanager
def _server() -> Iterator[Any]:
    # Django's own way to a server on which the database does not exist yet.
    with connection._nodb_cursor() as cursor:  # noqa: SLF001
        yield cursor


def _name(database: Mapping[str, Any]) -> str:
    return connection.ops.quote_name(database["NAME"])
