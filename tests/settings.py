"""One settings module for every database that the tests run on.

HELISCHED_TEST_DB names it: sqlite (when unset), postgres or mariadb.
HELISCHED_TEST_POSTGRES_HOST, _PORT, _USER and _PASSWORD say where that server
is, HELISCHED_TEST_MARIADB_... the other. HELISCHED_TEST_SUFFIX keeps two runs
against one server apart. HELISCHED_TEST_NAME points a child process at the
database that its parent made, HELISCHED_TEST_OPTIONS adds to its OPTIONS.
"""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

# Children inherit it, so a whole run shares one name and two runs never do.
SUFFIX = re.sub(r"\W", "_", os.environ.setdefault("HELISCHED_TEST_SUFFIX", str(os.getpid())))


def sqlite() -> dict[str, Any]:
    # A file: threads and processes of one test must meet in it, which ":memory:" cannot offer.
    scratch = Path(tempfile.gettempdir())
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(scratch / f"helisched_{SUFFIX}.sqlite3"),
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "TEST": {"NAME": str(scratch / f"test_helisched_{SUFFIX}.sqlite3")},
    }


def postgres() -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        **server("POSTGRES", port="5432", user="postgres"),
    }


def mariadb() -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.mysql",
        **server("MARIADB", port="3306", user="root"),
        "OPTIONS": {"isolation_level": "read committed", "charset": "utf8mb4"},
    }


def server(kind: str, *, port: str, user: str) -> dict[str, Any]:
    prefix = f"HELISCHED_TEST_{kind}_"
    return {
        # An address and not "localhost", which MySQL's client takes as the local socket.
        "HOST": os.environ.get(prefix + "HOST", "127.0.0.1"),
        "PORT": os.environ.get(prefix + "PORT", port),
        "USER": os.environ.get(prefix + "USER", user),
        "PASSWORD": os.environ.get(prefix + "PASSWORD", ""),
        "NAME": f"helisched_{SUFFIX}",
        "TEST": {"NAME": f"test_helisched_{SUFFIX}"},
    }


DATABASE = {"sqlite": sqlite, "postgres": postgres, "mariadb": mariadb}[os.environ.get("HELISCHED_TEST_DB", "sqlite")]()
if made_by_parent := os.environ.get("HELISCHED_TEST_NAME"):
    DATABASE["NAME"] = made_by_parent
DATABASE.setdefault("OPTIONS", {}).update(json.loads(os.environ.get("HELISCHED_TEST_OPTIONS", "{}")))

DATABASES = {"default": DATABASE}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# A child process is given the settings that its test wants.
HELISCHED = json.loads(os.environ.get("HELISCHED_TEST_SETTINGS", "{}"))

SECRET_KEY = "for tests only"
DEBUG = False
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"
# The real hashers are slow on purpose.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_helisched",
    "tests.app",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
