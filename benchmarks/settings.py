"""Django's settings for one peer in one benchmark process; the runner says which by BENCH_... variables.

The databases are set up alike for all: PostgreSQL as the server is configured
(the results say fsync and synchronous_commit), SQLite with a write-ahead log
and synchronous NORMAL, connections kept open. No logging but of warnings.
"""

import os
from typing import Any

from benchmarks.peers import this_peer

PEER = this_peer()
SEATS = int(os.environ.get("BENCH_SEATS", "1"))
NAME = os.environ["BENCH_NAME"]


def server(kind: str, port: str, user: str) -> dict[str, Any]:
    prefix = f"HELISCHED_TEST_{kind}_"
    return {
        "NAME": NAME,
        "HOST": os.environ.get(prefix + "HOST", "127.0.0.1"),
        # A worker whose statements are counted is sent through the counter.
        "PORT": os.environ.get("BENCH_PORT") or os.environ.get(prefix + "PORT", port),
        "USER": os.environ.get(prefix + "USER", user),
        "PASSWORD": os.environ.get(prefix + "PASSWORD", ""),
        "CONN_MAX_AGE": None,
    }


def database() -> dict[str, Any]:
    match os.environ["BENCH_DB"]:
        case "postgres":
            return {"ENGINE": "django.db.backends.postgresql", **server("POSTGRES", "5432", "postgres")}
        case "mariadb":
            options = {"isolation_level": "read committed", "charset": "utf8mb4"}
            return {"ENGINE": "django.db.backends.mysql", "OPTIONS": options, **server("MARIADB", "3306", "root")}
        case _:
            return {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": NAME,
                "CONN_MAX_AGE": None,
                "OPTIONS": {
                    "timeout": 20,
                    "transaction_mode": "IMMEDIATE",
                    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
                },
            }


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SECRET_KEY = "for benchmarks only"
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", *PEER.apps, "benchmarks.app"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}

globals().update(PEER.settings(DATABASES["default"], SEATS))
