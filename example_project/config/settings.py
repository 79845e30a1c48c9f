"""Settings of The Lighthouse Keeper, all from the environment (or a .env file here).

Nothing needs to be set: without DATABASE_URL the project runs on a SQLite file
in var/, with a key that is public and a server that listens to this machine only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ  # type: ignore[import-untyped]
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR.parent / "var"
# The address's first word, and what django-environ calls it.
SCHEMES = {"sqlite": "sqlite", "postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
PUBLIC_KEY = "insecure-lighthouse-demo-key-never-use-it-in-production"

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=True)
SECRET_KEY = env.str("SECRET_KEY", default=PUBLIC_KEY)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
if not DEBUG and SECRET_KEY == PUBLIC_KEY:
    raise ImproperlyConfigured("DEBUG is off and SECRET_KEY is not set: set it in the environment.")


def number(name: str, default: float) -> float:
    """Read a number, or say in one sentence what stands there instead."""
    text = env.str(name, default=str(default))
    try:
        return float(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={text!r} is not a number.") from None


def database() -> dict[str, Any]:
    """Read DATABASE_URL, or use a SQLite file, and add what each kind needs under several writers."""
    scheme, _, rest = env.str("DATABASE_URL", default="").partition("://")
    if rest and scheme in SCHEMES:
        config: dict[str, Any] = environ.Env.db_url_config(f"{SCHEMES[scheme]}://{rest}")
    elif scheme:
        # Never the whole address: it may hold a password.
        raise ImproperlyConfigured(
            f'DATABASE_URL begins with "{scheme[:20]}". Use sqlite:///path, postgres://... or mysql://...'
        )
    else:
        VAR_DIR.mkdir(exist_ok=True)
        config = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(VAR_DIR / "lighthouse.sqlite3")}
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"].endswith("sqlite3"):
        options.setdefault("timeout", 20)
        # A transaction that writes takes its lock at BEGIN: it waits, and never fails half-way.
        options.setdefault("transaction_mode", "IMMEDIATE")
        options.setdefault("init_command", "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
    elif config["ENGINE"].endswith("mysql"):
        options.setdefault("isolation_level", "read committed")
        options.setdefault("charset", "utf8mb4")
    return config


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_helisched",
    "lighthouse",
]

HELISCHED = {
    "LEASE": number("HELISCHED_LEASE", 30),
    "SWEEP": number("HELISCHED_SWEEP", 30),
    "THREADS": int(number("HELISCHED_THREADS", 4)),
}

# The weather when the database is new: 0 calm, 1 breeze, 2 gale, 3 hurricane. The page changes it.
LIGHTHOUSE_STORM = number("STORM", 0)
if LIGHTHOUSE_STORM not in range(4):
    raise ImproperlyConfigured(f"STORM={LIGHTHOUSE_STORM:g} is no weather: use 0, 1, 2 or 3.")

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
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

STATIC_URL = "static/"
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True

# A page that reloads itself would bury the scheduler's own lines under requests.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {"django.server": {"level": env.str("SERVER_LOG_LEVEL", default="INFO")}},
}
