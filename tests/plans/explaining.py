"""How the database carries out the statements that the stores really send, and how much it reads for them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = ("SELECT", "WITH", "UPDATE", "DELETE")
STEPS = 100  # of SQLite's machine, between two calls of its progress handler
STEPS_OF_A_ROW = 10  # roughly what it takes to look at one


@dataclass(frozen=True)
class Read:
    """One way into a table: by an index, or through the whole of it."""

    table: str
    index: str


@dataclass(frozen=True)
class Plan:
    """One statement: how it reads its tables, and how many rows it looked at, or pages where those are more."""

    sql: str
    reads: tuple[Read, ...]
    rows: int

    def reads_of(self, table: str) -> set[str]:
        """Return the indexes by which the table is read; "" stands for a scan of it."""
        return {read.index for read in self.reads if read.table == table}


@contextmanager
def explained() -> Iterator[list[Plan]]:
    """Give the plans of all statements of the block that read; each is explained, and then executed as it is."""
    plans: list[Plan] = []
    explain = _EXPLAIN[connection.vendor]
    is_explaining = False

    def wrapper(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal is_explaining
        if is_explaining or many or not sql.lstrip().upper().startswith(WORDS):
            return execute(sql, params, many, context)
        is_explaining = True
        try:
            result, plan = explain(sql, params, lambda: execute(sql, params, many, context))
        finally:
            is_explaining = False
        plans.append(plan)
        return result

    with connection.execute_wrapper(wrapper):
        yield plans


def _postgresql(sql: str, params: Any, execute: Callable[[], Any]) -> tuple[Any, Plan]:
    # What EXPLAIN ANALYZE does, it does: and is undone before the statement itself.
    with transaction.atomic():
        rows = _rows(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
        transaction.set_rollback(True)
    document = rows[0][0]
    top = (json.loads(document) if isinstance(document, str) else document)[0]["Plan"]
    nodes = list(_nodes(top))
    # Entries of an index that are passed over count nowhere, but their pages do.
    pages = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    reads = tuple(Read(node.get("Relation Name", ""), node.get("Index Name", "")) for node in _readers(nodes))
    rows_looked_at = sum(_looked_at(node) for node in nodes if "Scan" in node["Node Type"])
    return execute(), Plan(sql, reads, max(rows_looked_at, pages))


def explained_for_any(sql: str, params: Any, *settings: str) -> Plan:
    """Return the plan that PostgreSQL makes for a statement before it knows the parameters, which EXPLAIN then uses."""
    prepared = "".join(f"${at}{part}" if at else part for at, part in enumerate(sql.split("%s")))
    types = ["timestamptz" if isinstance(value, datetime) else "unknown" for value in params]
    with transaction.atomic(), connection.cursor() as cursor:
        for setting in settings:
            cursor.execute(setting)
        cursor.execute(f"PREPARE for_any ({', '.join(types)}) AS {prepared}")
        try:
            _, plan = _postgresql(f"EXECUTE for_any ({', '.join(['%s'] * len(params))})", params, lambda: None)
        finally:
            cursor.execute("DEALLOCATE for_any")
            transaction.set_rollback(True)
    return replace(plan, sql=sql)


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        # A bitmap's heap scan names the table, its index scans the indexes.
        below = {"Relation Name": node["Relation Name"]} if node["Node Type"] == "Bitmap Heap Scan" else {}
        yield from _nodes(below | child)


def _readers(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (node for node in nodes if "Relation Name" in node and node["Node Type"] in _READERS)


_READERS = ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan", "Tid Scan")


def _looked_at(node: dict[str, Any]) -> int:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round((node["Actual Rows"] + removed) * node["Actual Loops"])


def _sqlite(sql: str, params: Any, execute: Callable[[], Any]) -> tuple[Any, Plan]:
    words = [str(row[3]).split() for row in _rows(f"EXPLAIN QUERY PLAN {sql}", params)]
    reads = tuple(_sqlite_read(line) for line in words if line[0] in {"SCAN", "SEARCH"})
    calls = 0

    def step() -> int:
        nonlocal calls
        calls += 1
        return 0

    driver: Any = connection.connection
    # Carried out to its last row, which Django might not ask for, and undone before the statement itself.
    with transaction.atomic():
        driver.set_progress_handler(step, STEPS)
        try:
            _rows(sql, params)
        finally:
            driver.set_progress_handler(None, 0)
        transaction.set_rollback(True)
    return execute(), Plan(sql, reads, calls * STEPS // STEPS_OF_A_ROW)


def _sqlite_read(words: list[str]) -> Read:
    """Read "SEARCH table USING [COVERING] INDEX name (...)", "... USING INTEGER PRIMARY KEY ..." or "SCAN table"."""
    table = words[1]
    if "INDEX" in words:
        return Read(table, words[words.index("INDEX") + 1])
    return Read(table, "" if words[0] == "SCAN" else "PRIMARY")


def _mysql(sql: str, params: Any, execute: Callable[[], Any]) -> tuple[Any, Plan]:
    reads = tuple(
        # "a|b": the rows that a finds are filtered by b.
        Read(row["table"], (row["key"] or "").partition("|")[0])
        for row in _named_rows(f"EXPLAIN {sql}", params)
        if row["table"] and row["type"] and not row["table"].startswith("<")
    )
    asking = -_handler_reads() + _handler_reads()
    before = _handler_reads()
    result = execute()
    return result, Plan(sql, reads, _handler_reads() - before - asking)


def _handler_reads() -> int:
    return sum(int(row[1]) for row in _rows("SHOW SESSION STATUS LIKE 'Handler_read%'", None))


def _rows(sql: str, params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _named_rows(sql: str, params: Any) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


_EXPLAIN = {"postgresql": _postgresql, "sqlite": _sqlite, "mysql": _mysql}
