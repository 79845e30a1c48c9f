"""The form of a cron, filled in and sent."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django_helisched.models import Cron
from django_helisched.scheduler import crons
from tests.surface.admin.pages import address
from tests.surface.admin.rows import FUNCTION

if TYPE_CHECKING:
    from django.test import Client

GOOD = {
    "name": "digest",
    "space": "",
    "fn": FUNCTION,
    "args": '{"mark": 1}',
    "expr": "0 9 * * mon-fri",
    "every": "",
    "tz": "Europe/Paris",
    "start": "",
    "end": "",
    "catch_up": "fire_all",
    "overlap": "skip",
    "jitter": "2.5",
    "queue": "mail",
    "priority": "3",
    "max_failures": "4",
    "enabled": "on",
}


def edited(client: Client, cron: Any, **changed: str) -> Any:
    """Post the form of a cron as a browser does that changes these fields."""
    url = address("cron_edit", getattr(cron, "pk", cron.id))
    form = client.get(url).context["form"]
    data = {field.name: field.value() for field in form}
    given = {name: value for name, value in data.items() if value not in (None, False)}
    return client.post(url, {**given, **changed})


def due() -> datetime:
    moment = Cron.objects.get().next_run_at
    assert moment is not None
    return moment


def errors_of(response: Any) -> dict[str, list[str]]:
    assert response.status_code == 200, response
    return {name: list(said) for name, said in response.context["form"].errors.items()}


def created(**given: Any) -> Any:
    options: dict[str, Any] = {"args": {"mark": 1}, "expr": "0 9 * * *", **given}
    return crons.create("digest", FUNCTION, **options)
