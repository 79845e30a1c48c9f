"""What ``manage.py helisched`` prints."""

from __future__ import annotations

import io
import json
from typing import Any

from django.core.management import call_command


def printed(*words: str) -> str:
    """Return all that the command prints."""
    out = io.StringIO()
    call_command("helisched", *words, stdout=out)
    return out.getvalue()


def ask(*words: str) -> list[str]:
    """Return the lines that the command prints."""
    return printed(*words).splitlines()


def data(*words: str) -> Any:
    """Return what the command prints as JSON."""
    return json.loads(printed(*words, "--json"))
