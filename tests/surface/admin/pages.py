"""Addresses of the pages, and what a response says."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from django.contrib.messages import get_messages
from django.urls import reverse

if TYPE_CHECKING:
    from django.test import Client

LISTS = ("job", "cron", "worker", "queue")


def address(view: str, *args: Any) -> str:
    return reverse(f"admin:helisched_{view}", args=args)


def told(response: Any) -> list[str]:
    """Return the messages that the response stored or shows."""
    return [str(message) for message in get_messages(response.wsgi_request)]


def shown(client: Client, url: str, data: dict[str, Any] | None = None) -> str:
    """Return a page's text as a reader gets it: without markup, entities resolved."""
    response = client.get(url, data or {})
    assert response.status_code == 200, response
    body = response.content.decode().partition('id="content-start"')[2]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def rows(client: Client, data: dict[str, Any] | None = None) -> set[Any]:
    """Return the ids of the jobs that the list shows."""
    response = client.get(address("job_changelist"), data or {})
    assert response.status_code == 200, response
    return {job.pk for job in response.context["cl"].result_list}


def act(client: Client, model: str, action: str, keys: list[Any], *, query: str = "", **extra: Any) -> Any:
    """Run an action of the list on ticked rows."""
    data = {"action": action, "_selected_action": [str(key) for key in keys], "index": "0", **extra}
    return client.post(f"{address(f'{model}_changelist')}{query}", data)
