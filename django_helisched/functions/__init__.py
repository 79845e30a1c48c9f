"""Functions that can run as jobs: the decorators, the registry, and the one enqueue."""

from django_helisched.functions.call import Call, enqueue_calls, new_call
from django_helisched.functions.decorators import action, mutation
from django_helisched.functions.function import JobFunction
from django_helisched.functions.limiting import capacity_of
from django_helisched.functions.options import JobOptions
from django_helisched.functions.registry import find, known_paths, registered, resolve

__all__ = [
    "Call",
    "JobFunction",
    "JobOptions",
    "action",
    "capacity_of",
    "enqueue_calls",
    "find",
    "known_paths",
    "mutation",
    "new_call",
    "registered",
    "resolve",
]
