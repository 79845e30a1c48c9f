"""Many rows out of one, by one statement for each database: what a table looks like after a year."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Mapping

# A number from 1 to count, called n.
SERIES = {
    "postgresql": "generate_series(1, {count}) AS series(n)",
    "sqlite": "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s) "
    "series",
    "mysql": "(SELECT seq AS n FROM seq_1_to_{count}) series",
}
NEW_UUID = {
    "postgresql": "gen_random_uuid()",
    "sqlite": "lower(hex(randomblob(16)))",
    "mysql": "uuid()",
}


def clone(table: str, count: int, changes: Mapping[str, str], *, which: str = "") -> None:
    """Copy one row of ``table`` ``count`` times with new keys; ``changes`` are columns and the SQL of their values.

    ``which`` says of which row. The SQL may use ``one``, the row, ``series.n``, which goes from 1 to
    ``count``, and ``{in_a_year}``.
    """
    if not count:
        return
    name = connection.ops.quote_name
    columns = _columns(table)
    spelled = {column: sql.format(in_a_year=_in_a_year()) for column, sql in changes.items()}
    values = [spelled.get(column) or _key(table, column, kind) or f"one.{name(column)}" for column, kind in columns]
    listed = [(column, value) for (column, _), value in zip(columns, values, strict=True) if value != "DEFAULT"]
    where = f"WHERE {which}" if which else ""
    with connection.cursor() as cursor:
        # A statement without parameters: Django leaves its percent signs alone.
        cursor.execute(
            f"INSERT INTO {name(table)} ({', '.join(name(column) for column, _ in listed)}) "
            f"SELECT {', '.join(value for _, value in listed)} "
            f"FROM (SELECT * FROM {name(table)} {where} LIMIT 1) one, {SERIES[connection.vendor].format(count=count)}"
        )


def _columns(table: str) -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        return [(item.name, _kind(item)) for item in connection.introspection.get_table_description(cursor, table)]


def _kind(item: Any) -> str:
    try:
        return str(connection.introspection.get_field_type(item.type_code, item))
    except KeyError:  # a type that somebody has made, which is no key
        return ""


def _key(table: str, column: str, kind: str) -> str | None:
    """Return the value of a primary key: a new UUID, or whatever the database counts."""
    with connection.cursor() as cursor:
        primary = connection.introspection.get_primary_key_column(cursor, table)
    if column != primary:
        return None
    return "DEFAULT" if "Auto" in kind or "Integer" in kind else NEW_UUID[connection.vendor]


def _in_a_year() -> str:
    return {
        "postgresql": "now() + interval '1 year'",
        "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 year')",
        "mysql": "utc_timestamp(3) + interval 1 year",
    }[connection.vendor]
