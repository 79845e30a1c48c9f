"""The form of a cron that the database holds. Its checks are those of ``scheduler.crons``, each at its field."""

from __future__ import annotations

import hashlib
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_helisched import conf
from django_helisched.admin.cron_fields import (
    ArgumentsField,
    FunctionField,
    instant_in,
    text_of_arguments,
    text_of_instant,
    unmasked,
)
from django_helisched.crons.declaring import declare, schedule_of
from django_helisched.crons.operations import EDITABLE
from django_helisched.crons.options import MAX_NAME, MAX_QUEUE, MAX_SPACE, checked_name, checked_options
from django_helisched.crons.refusals import InvalidSchedule, UnknownZone
from django_helisched.crons.spec import IntervalSpec, parse_spec
from django_helisched.crons.wall_clock import zone
from django_helisched.exceptions import HelischedError, InvalidArguments, UnknownFunction
from django_helisched.models import Cron
from django_helisched.scheduler.checking import check_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from django_helisched.crons.cron import CronSnapshot
    from django_helisched.crons.spec import Spec

_OPTIONS: Final = ("catch_up", "overlap", "jitter", "queue", "priority", "max_failures", "enabled")
_MAX_JITTER: Final = 366 * 86_400  # seconds; a longer one would not fit every database's column
_REFUSALS: Final = (HelischedError, TypeError)
# The field to blame for what only the whole declaration shows.
_BLAMED: Final = ((UnknownZone, "tz"), (InvalidSchedule, "expr"), (UnknownFunction, "fn"), (InvalidArguments, "args"))


def _choices(name: str) -> list[Any]:
    return list(getattr(Cron._meta.get_field(name), "choices", None) or ())


class CronForm(forms.Form):
    """What a person may say of a cron. ``row`` is the cron as it stands, None for a new one."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME)
    space = forms.CharField(label=_("Space"), max_length=MAX_SPACE, required=False)
    fn = FunctionField(label=_("Function"))
    args = ArgumentsField(
        label=_("Arguments"), help_text=_("JSON: an object for keyword arguments, a list for positional ones.")
    )
    expr = forms.CharField(
        label=_("Cron expression"), required=False, help_text=_("Such as 0 9 * * mon-fri. This or the interval.")
    )
    every = forms.FloatField(label=_("Interval"), required=False, help_text=_("Seconds."))
    tz = forms.CharField(label=_("Zone"), widget=forms.TextInput({"list": "hs-zones", "autocomplete": "off"}))
    start = forms.CharField(
        label=_("Start"), required=False, help_text=_("Such as 2027-03-28 09:30, in the zone above.")
    )
    end = forms.CharField(label=_("End"), required=False)
    catch_up = forms.ChoiceField(label=_("Catch-up"), choices=_choices("catch_up"), initial="fire_once")
    overlap = forms.ChoiceField(label=_("Overlap"), choices=_choices("overlap"), initial="allow")
    jitter = forms.FloatField(
        label=_("Jitter"), required=False, min_value=0, max_value=_MAX_JITTER, help_text=_("Seconds.")
    )
    queue = forms.CharField(label=_("Queue"), required=False, max_length=MAX_QUEUE)
    priority = forms.IntegerField(label=_("Priority"), required=False)
    max_failures = forms.IntegerField(label=_("Failures allowed"), required=False)
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any, *, row: CronSnapshot | None, may_see_args: bool) -> None:
        self.row = row
        initial = {"tz": conf.get_settings().tz} if row is None else values_of(row)
        super().__init__(data, initial=initial)
        if row is None:
            return
        self.fields["name"].disabled = self.fields["space"].disabled = True
        self.fields["fn"].offer(row.fn_path)  # type: ignore[attr-defined]  # a FunctionField
        if not may_see_args:
            del self.fields["args"]

    def clean(self) -> dict[str, Any]:
        """Check all that can be checked without a look at other rows."""
        given = self.cleaned_data
        tz = self._tried("tz", lambda: zone(given["tz"])) if "tz" in given else None
        for name, blank, limit in (("name", False, MAX_NAME), ("space", True, MAX_SPACE)):
            if name in given and self.row is None:
                self._tried(name, partial(checked_name, name, given[name], limit=limit, blank=blank))
        given["queue"] = given.get("queue") or None
        given["jitter"] = given.get("jitter") or 0
        for name in set(_OPTIONS) & given.keys():
            self._tried(name, partial(checked_options, {name: given[name]}))
        self._clean_window(tz or UTC)
        given["schedule"] = self._schedule()
        if "args" in given and self.row is not None:
            given["args"] = unmasked(self.row.fn_path, given["args"], self.row.args or self.row.kwargs or None)
        if not self.errors:
            self._clean_function()
        return given

    def _clean_window(self, tz: tzinfo) -> None:
        given = self.cleaned_data
        for name in ("start", "end"):
            text = given.get(name)
            given[name] = None
            if text:
                try:
                    given[name] = instant_in(text, tz)
                except forms.ValidationError as error:
                    self.add_error(name, error)
        window = {name: given.get(name) for name in ("start", "end")}
        self._tried("end", lambda: checked_options(window))

    def _schedule(self) -> Spec | None:
        given = self.cleaned_data
        if {"expr", "every"} & self.errors.keys():
            return None
        expr, every = given.get("expr") or None, given.get("every")
        if (expr is None) == (every is None):
            self.add_error("expr", gettext("Give a cron expression or an interval, one of the two."))
            return None
        schedule: Spec | None = self._tried("every" if expr is None else "expr", lambda: schedule_of(expr, every))
        return schedule

    def _clean_function(self) -> None:
        given = self.cleaned_data
        args = given["args"] if "args" in given else self._stored_args()
        try:
            declaration = declare(
                given["name"], lambda: given["schedule"], given["fn"], args, {**self.options(), "space": given["space"]}
            )
            check_function(declaration)
        except _REFUSALS as error:
            self.blame(error, otherwise="max_failures")

    def _stored_args(self) -> Any:
        return None if self.row is None else (self.row.args or self.row.kwargs)

    def _tried(self, field: str, check: Callable[[], Any]) -> Any:
        try:
            return check()
        except _REFUSALS as error:
            self.add_error(field if field in self.cleaned_data else None, str(error))
            return None

    def blame(self, error: Exception, *, otherwise: str | None = None) -> None:
        """Say the sentence of a refusal at the field that it is about."""
        field = next((name for kind, name in _BLAMED if isinstance(error, kind)), otherwise)
        self.add_error(field if field in self.fields else None, str(error))

    def options(self) -> dict[str, Any]:
        """Return the options as ``crons.create`` and ``crons.edit`` take them, without the space."""
        return {name: self.cleaned_data[name] for name in (*_OPTIONS, "tz", "start", "end")}

    def changes(self) -> dict[str, Any]:
        """Return what ``crons.edit`` takes."""
        given = self.cleaned_data
        schedule = {"expr": given["expr"]} if given["expr"] else {"every": given["every"]}
        args = {} if "args" not in given else {"args": given["args"]}
        return {**self.options(), **schedule, **args, "fn": given["fn"]}


def values_of(row: CronSnapshot) -> dict[str, Any]:
    """Return the fields of a cron as the form shows them; a schedule that cannot be read is left out."""
    try:
        tz: tzinfo = zone(row.tz)
    except InvalidSchedule:
        tz = UTC
    return {
        **{name: getattr(row, name) for name in ("name", "space", "tz", *_OPTIONS)},
        **_schedule_of(row),
        "fn": row.fn_path,
        "args": text_of_arguments(row.fn_path, row.args or row.kwargs),
        "jitter": row.jitter.total_seconds() or None,
        "start": text_of_instant(row.start, tz),
        "end": text_of_instant(row.end, tz),
        "seen": fingerprint(row),
    }


def _schedule_of(row: CronSnapshot) -> dict[str, Any]:
    try:
        spec = parse_spec(row.spec)
    except InvalidSchedule:
        return {}
    return {"every": spec.ms / 1000} if isinstance(spec, IntervalSpec) else {"expr": spec.expression.text}


def fingerprint(row: CronSnapshot) -> str:
    """Return a text that changes with what an edit can change, and not with a fire."""
    values = repr([(name, getattr(row, name)) for name in sorted(EDITABLE)])
    return hashlib.sha256(values.encode("utf-8", "surrogatepass")).hexdigest()[:32]
