"""SQLite: words travel as datagrams, to a socket of each listening process in a folder beside the file."""

from __future__ import annotations

import os
import re
import secrets
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

LONGEST_PATH = 103  # bytes of a socket's path: Linux takes 107, macOS and the BSDs 103
WORD_SIZE = 64  # bytes

_NAME = re.compile(r"[0-9a-f]{8}")


def new_name() -> str:
    """Return a name for a socket that no other process has."""
    return secrets.token_hex(4)


class Datagrams:
    """One datagram to each socket in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, connection: BaseDatabaseWrapper) -> Datagrams | None:
        """Return the channel of a SQLite file; None for another database, and where there is no file or no socket."""
        file = file_of(connection)
        return cls(folder_of(file)) if file is not None and hasattr(socket, "AF_UNIX") else None

    def send(self, text: str) -> None:
        """Send to every socket, and remove those that nobody listens to any more."""
        try:
            paths = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # nobody listens, or not to this user
        if not paths:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            for path in paths:
                _send_to(sender, path, text.encode())


def file_of(connection: BaseDatabaseWrapper) -> Path | None:
    """Return the file of a SQLite database; None for one in memory, for a URI and for other databases."""
    name = str(connection.settings_dict["NAME"] or "")
    if connection.vendor != "sqlite" or not name or name == ":memory:" or name.startswith("file:"):
        return None
    # By whatever way a process names the file, all of them must meet.
    return Path(os.path.realpath(name))


def folder_of(file: Path) -> Path:
    """Return the folder of the sockets, named as SQLite names what it keeps beside the file."""
    return file.with_name(file.name + "-wake")


def _send_to(sender: socket.socket, path: Path, word: bytes) -> None:
    try:
        sender.sendto(word, os.fspath(path))
    except ConnectionRefusedError:
        # Its process is gone, and could not remove it.
        with suppress(OSError):
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
    except OSError:
        # One that is full will be read, and what it stands for seen; the others are not for us.
        return
