"""Functions that can run as jobs: the decorators and the registry. Whoever enqueues imports ``call``."""

from django_helisched.functions.decorators import action, mutation
from django_helisched.functions.function import JobFunction
from django_helisched.functions.limiting import capacity_of
from django_helisched.functions.options import JobOptions
from django_helisched.functions.registry import find, known_paths, registered, resolve

__all__ = [
    "JobFunction",
    "JobOptions",
    "action",
    "capacity_of",
    "find",
    "known_paths",
    "mutation",
    "registered",
    "resolve",
]
