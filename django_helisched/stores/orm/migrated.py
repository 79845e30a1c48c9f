"""Say what to type where the app's tables are missing."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS

from django_helisched.exceptions import NotMigrated
from django_helisched.models import Job


def not_migrated(alias: str, table: str = "") -> NotMigrated:
    """Return the exception for a missing table of the database ``alias``."""
    elsewhere = "" if alias == DEFAULT_DB_ALIAS else f" --database {alias}"
    return NotMigrated(
        f'table {table or Job._meta.db_table} is missing in database "{alias}". '
        f"Run: python manage.py migrate helisched{elsewhere}"
    )
