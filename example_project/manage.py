#!/usr/bin/env python
from __future__ import annotations

import os
import sys


def main() -> None:
    """Run Django's command line with the example's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is not installed for this Python. Run: make demo (it makes .venv), then use .venv/bin/python.")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
