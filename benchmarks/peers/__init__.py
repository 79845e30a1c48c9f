"""One file per peer. Importing any of them imports no peer: the runner reads them without having one installed."""

from __future__ import annotations

import os
from importlib import import_module

from benchmarks.peers.base import Peer

# In the order of the tables: ours, the peers, the limit of plain SQL.
NAMES = (
    "helisched",
    "django_tasks_db",
    "procrastinate",
    "django_q2",
    "huey",
    "dj_queue",
    "django_ox",
    "django_vtasks",
    "pgqueuer",
    "chancy",
    "sql_django",
    "sql_driver",
)


def peer_named(name: str) -> Peer:
    """Return the peer of the file ``name``; a name of its distribution is understood too."""
    file = name.replace("-", "_")
    if file not in NAMES:
        raise SystemExit(f'benchmarks: no peer is called "{name}"; there are {", ".join(NAMES)}.')
    peer: Peer = import_module(f"benchmarks.peers.{file}").PEER
    return peer


def this_peer() -> Peer:
    """Return the peer that this process is about."""
    return peer_named(os.environ["BENCH_PEER"])


__all__ = ["NAMES", "Peer", "peer_named", "this_peer"]
