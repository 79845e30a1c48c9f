"""How an idempotency key is compared: by a digest that belongs to its space."""

from __future__ import annotations

import hashlib


def digest_of(space: str, key: str) -> str:
    """Return the SHA-256 of a space and a key, unambiguous whatever they contain."""
    return hashlib.sha256(f"{len(space)}:{space}{key}".encode()).hexdigest()
