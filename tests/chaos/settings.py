"""The settings of the fleet: those of the tests with the jobs and crons of a chaos run, and without what takes time."""

from tests.settings import *  # noqa: F403

# A process starts every second or so: no admin, no web.
INSTALLED_APPS = ["django.contrib.contenttypes", "django_helisched", "tests.app", "tests.chaos"]
MIDDLEWARE = []
TEMPLATES = []
ROOT_URLCONF = __name__
urlpatterns: list[object] = []
SILENCED_SYSTEM_CHECKS = ["helisched.W010"]  # a cron of every second is meant here
