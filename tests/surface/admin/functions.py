from __future__ import annotations

from django_helisched import action


@action
def log_in(user: str, password: str) -> None:
    """Do nothing: only the names of the parameters matter."""
