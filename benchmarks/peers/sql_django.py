"""The limit of plain SQL through Django's cursor and atomic(): see benchmarks/limits.py."""

from __future__ import annotations

from benchmarks.peers.sql_driver import PlainSql


class PlainSqlByDjango(PlainSql):
    kind = "django"
    name = "plain SQL, Django's cursor"


PEER = PlainSqlByDjango()
