"""Small pieces of text and markup that lists and pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html
from django.utils.translation import gettext

from django_helisched.admin import states
from django_helisched.jobs.job import State

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from django_helisched.models import Job


def short_name(fn_path: str) -> str:
    """Return the last part of a dotted path."""
    return fn_path.rpartition(".")[2] or fn_path


def short_id(job_id: object) -> str:
    """Return the end of an id: its beginning is a time, which neighbours share."""
    return f"…{str(job_id)[-12:]}"


def second_line(text: object) -> SafeString | str:
    """Return a quiet line below a cell's main text, nothing for nothing."""
    return format_html('<span class="hs-second">{}</span>', text) if text else ""


def flag(text: object, *, is_bad: bool = False) -> SafeString:
    """Return a word in a frame, in the colour of errors where it is one."""
    return format_html('<span class="hs-flag{}">{}</span>', " hs-bad" if is_bad else "", text)


def remark_on(job: Job, view: str) -> str:
    """Return what the pill of a job does not say."""
    if view == states.RETRYING:
        text = gettext("%(failures)s of %(budget)s failures")
        return text % {"failures": job.attempts, "budget": job.max_failures}
    if view == states.HELD:
        return str(job.get_hold_display())
    if job.state == State.FAILED:
        return str(job.get_failure_reason_display())
    if job.state == State.IN_PROGRESS and job.cancel_requested_at:
        return gettext("asked to stop")
    return ""


def damage_text(columns: tuple[str, ...]) -> str:
    """Return the sentence that names the columns of a row that cannot be read."""
    return gettext("This row is damaged: %(columns)s cannot be read.") % {"columns": ", ".join(columns)}
