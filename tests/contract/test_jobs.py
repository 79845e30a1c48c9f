from __future__ import annotations

from django_helisched.testing.contract import JobStoreContract


class TestJobStore(JobStoreContract):
    """Every guarantee about jobs, on every store."""
