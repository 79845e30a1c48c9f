"""How long a failed job waits before it runs again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays in seconds: ``initial`` before growth, factor ``base``, at most ``max``."""

    initial: float = 0.25
    base: float = 2.0
    max: float = 600.0

    def __post_init__(self) -> None:
        finite = all(math.isfinite(value) for value in (self.initial, self.base, self.max))
        if not finite or self.initial < 0 or self.base < 1 or self.max < 0:
            raise ValueError(
                f"backoff initial={self.initial!r}, base={self.base!r}, max={self.max!r}: initial and max "
                "must be zero or more seconds, base 1 or more."
            )


DEFAULT_BACKOFF = Backoff()


def compute_backoff(attempts: int, rng: Callable[[], float], options: Backoff = DEFAULT_BACKOFF) -> timedelta:
    """Return the delay after the ``attempts``-th failure, the failure just seen included.

    ``initial * base ** (attempts + 1)``, times 0.5 to 1.0 by ``rng()`` (which
    returns 0 <= x < 1), at most ``max``. Any count gives a finite delay.
    """
    nominal = min(options.max, _nominal(attempts, options))
    return timedelta(seconds=nominal * (0.5 + 0.5 * rng()))


def _nominal(attempts: int, options: Backoff) -> float:
    if options.initial == 0:
        return 0.0
    try:
        return options.initial * options.base ** (attempts + 1)
    except OverflowError:
        return options.max
