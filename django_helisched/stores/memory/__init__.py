"""Stores in this process's memory: the contract as an executable specification, and a test double.

Nothing is durable, and transactions come one after another: a thread that holds
one open keeps the others waiting.
"""

from django_helisched.stores.memory.crons import MemoryCronStore
from django_helisched.stores.memory.jobs import MemoryJobStore

__all__ = ["MemoryCronStore", "MemoryJobStore"]
