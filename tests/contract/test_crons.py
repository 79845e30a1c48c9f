from __future__ import annotations

from django_helisched.testing.contract import CronStoreContract


class TestCronStore(CronStoreContract):
    """Every guarantee about crons, on every store."""
