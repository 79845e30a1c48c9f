from __future__ import annotations

import pytest

from django_helisched.stores import clock


@pytest.fixture(autouse=True)
def one_reading_of_the_clock(monkeypatch: pytest.MonkeyPatch):
    """Let no test that counts queries count one more where the machine was slow."""
    monkeypatch.setattr(clock, "RESYNC_AFTER", float("inf"))
