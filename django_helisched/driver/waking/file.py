"""A socket beside a SQLite file, and a glance at the file itself."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from django.db import connections

from django_helisched.driver import connections as threads
from django_helisched.driver.waking.ear import Waiting
from django_helisched.stores.clock import elapsed
from django_helisched.stores.orm.channel_datagram import LONGEST_PATH, WORD_SIZE, Datagrams, folder_of, new_name
from django_helisched.stores.words import LOOK, spelled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from django.db.backends.base.base import BaseDatabaseWrapper

_TRIES = 3  # another process may remove the empty folder just before the socket appears in it
_READ_AND_WRITE = 0o666

# What whoever wrote to the file without a word might have said.
_SOMEBODY = spelled(LOOK, speaker="0")


class FileEar:
    """Hears datagrams; and sees by the file's version number that somebody wrote without a word.

    Where there can be no socket it only looks at the file: ``deaf_because`` says why.
    """

    def __init__(self, file: Path, alias: str, glance_every: float) -> None:
        self._file = file
        self._alias = alias
        self._glance_every = glance_every
        self._waiting = Waiting()
        self._socket: socket.socket | None = None
        self._path: Path | None = None
        self._connection: BaseDatabaseWrapper | None = None
        self._version: int | None = None
        self._glance_at = 0.0
        self.deaf_because = ""

    @property
    def name(self) -> str:
        return "polling" if self.deaf_because else "datagram"

    def open(self) -> None:
        self._open_socket()
        ordinary = connections[self._alias]
        self._connection = type(ordinary)(ordinary.settings_dict, self._alias)
        self._connection.ensure_connection()
        self._version = self._glance()

    def hear(self, seconds: float) -> list[str]:
        end = elapsed() + seconds
        while True:
            words = [*self._received(), *self._seen()]
            left = end - elapsed()
            if words or left <= 0 or self._waiting.is_interrupted:
                return words
            descriptor = None if self._socket is None else self._socket.fileno()
            self._waiting.until_readable(descriptor, min(left, self._glance_at - elapsed()))

    def say(self, text: str) -> None:
        if self._path is None:
            return
        Datagrams(self._path.parent).send(text)

    def by_its_line(self, ask: Callable[[], bool]) -> bool:
        del ask
        return False

    def close(self) -> None:
        self._waiting.close()
        if self._socket is not None:
            self._socket.close()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            with suppress(OSError):  # others listen, too
                self._path.parent.rmdir()
        if self._connection is not None:
            threads.close(self._connection)
        self._socket = self._path = self._connection = None

    def interrupt(self) -> None:
        self._waiting.interrupt()

    def _open_socket(self) -> None:
        if not hasattr(socket, "AF_UNIX"):
            self.deaf_because = "this platform has no Unix sockets"
            return
        path = folder_of(self._file) / new_name()
        if len(os.fsencode(path)) > LONGEST_PATH:
            self.deaf_because = (
                f"the path of a socket beside the database file would be longer than {LONGEST_PATH} bytes"
            )
            return
        try:
            self._socket = _bound(path, self._file)
        except OSError as error:
            self.deaf_because = f"no socket can be made beside the database file ({error})"
        else:
            self._path, self.deaf_because = path, ""

    def _received(self) -> list[str]:
        words: list[str] = []
        while self._socket is not None:
            try:
                words.append(self._socket.recv(WORD_SIZE).decode("ascii", "replace"))
            except BlockingIOError:
                break
        return words

    def _seen(self) -> list[str]:
        if elapsed() < self._glance_at:
            return []
        version = self._glance()
        self._glance_at = elapsed() + self._glance_every
        if version is None or version == self._version:
            return []
        self._version = version
        return [_SOMEBODY]

    def _glance(self) -> int | None:
        """Return a number that changes with every commit of another connection; None: the file is locked."""
        if self._connection is None:
            return None
        try:
            # Past Django's cursor, which costs ten times as much as the answer.
            ((version,),) = self._connection.connection.execute("PRAGMA data_version")
        except sqlite3.OperationalError:
            return None
        return int(version)


def _bound(path: Path, file: Path) -> socket.socket:
    """Return a socket at ``path``, to which everybody may send who may write to ``file``."""
    its = file.stat()
    mode = stat.S_IMODE(its.st_mode) & _READ_AND_WRITE
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.settimeout(0)
    try:
        for tries_left in reversed(range(_TRIES)):
            # Whoever may read the file may search the folder.
            _make_folder(path.parent, its.st_gid, stat.S_IRWXU | mode | (mode & 0o444) >> 2)
            try:
                ours.bind(os.fspath(path))
                break
            except FileNotFoundError:
                if not tries_left:
                    raise
        _share(path, its.st_gid, mode)
    except OSError:
        ours.close()
        raise
    return ours


def _make_folder(folder: Path, group: int, mode: int) -> None:
    try:
        folder.mkdir(mode=stat.S_IRWXU)
    except FileExistsError:
        return
    _share(folder, group, mode)


def _share(path: Path, group: int, mode: int) -> None:
    with suppress(OSError):  # only a member of the file's group can give something to it
        os.chown(path, -1, group)
    with suppress(OSError):
        path.chmod(mode)
