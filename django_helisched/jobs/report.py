"""An exception as text that any database can store.

Nothing here raises, whatever the exception does: an error that cannot be
written down must not end a worker.
"""

from __future__ import annotations

import re
import traceback

from django_helisched.jobs.outcome import MAX_LINE, ErrorReport
from django_helisched.jobs.payload import clean_text

MAX_ERROR = 8_000  # characters: enough for a message, small beside a row
MAX_TRACEBACK = 32_000  # characters, the newest frames kept

# A word is tried from its start only: a message of a million letters must not cost their square.
_CREDENTIALS = re.compile(
    r"(?P<scheme>(?<!\w)\w{1,32}://[^\s:/@]*:)[^\s@/]+(?=@)|(?P<word>password\s*=\s*)\S+", re.IGNORECASE
)


def describe_error(error: BaseException) -> ErrorReport:
    """Return the class path, message, traceback and first line of ``error``.

    NUL bytes and lone surrogates are escaped, credentials in connection strings
    masked, and long texts cut with a mark.
    """
    kind = type(error)
    name = clean_text(f"{kind.__module__}.{kind.__qualname__}")
    message = _text_of(error)
    first = message.strip().splitlines()[0] if message.strip() else ""
    return ErrorReport(
        error_class=name[-250:],
        error=_cut(message, MAX_ERROR),
        traceback=_traceback_of(error),
        line=_cut(f"{clean_text(kind.__qualname__)}: {first}" if first else kind.__qualname__, MAX_LINE),
    )


def describe_text(kind: str, message: str) -> ErrorReport:
    """Return a report for a failure that no exception stands for."""
    text = _cut(masked(clean_text(message)), MAX_ERROR)
    return ErrorReport(error_class=kind, error=text, line=_cut(text, MAX_LINE))


def _text_of(error: BaseException) -> str:
    try:
        return masked(clean_text(str(error)))
    except Exception as broken:  # a raising __str__ is the exception's own fault, not the job's
        return f"<str() of this exception raised {type(broken).__name__}>"


def _traceback_of(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(error, limit=-50)
        text = masked(clean_text("".join(lines)))
    except Exception as broken:
        return f"<the traceback could not be formatted: {type(broken).__name__}>"
    if len(text) <= MAX_TRACEBACK:
        return text
    return f"[... {len(text) - MAX_TRACEBACK} characters cut]\n{text[-MAX_TRACEBACK:]}"


def masked(text: str) -> str:
    """Return ``text`` with the passwords of connection strings hidden."""
    return _CREDENTIALS.sub(lambda match: f"{match['scheme'] or match['word']}***", text)


def _cut(text: str, limit: int) -> str:
    mark = " [cut]"
    return text if len(text) <= limit else text[: limit - len(mark)] + mark
