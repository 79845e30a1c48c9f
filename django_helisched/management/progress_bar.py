"""How far something has come, on one line of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

_WIDTH: Final = 24  # characters of the bar itself
_CLEAR: Final = "\r\x1b[K"  # to the line's beginning, and erase it


class ProgressBar:
    """Draws over its own line; on anything but a terminal it says nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._shown = ""

    def show(self, label: str, share: float, text: str) -> None:
        """Draw one line: what is being done, how far, from 0 to 1, and what there is to say."""
        filled = round(_WIDTH * min(1.0, max(0.0, share)))
        line = f"{label:<10} [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {text}"
        if self._is_shown and line != self._shown:
            self._write(_CLEAR + line)
            self._shown = line

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            self._write(_CLEAR)
            self._shown = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
