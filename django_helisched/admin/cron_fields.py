"""What a form about crons is written in: instants of a zone, arguments as JSON, a registered function."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from django_helisched.admin.arguments import MASK, is_secret, masked, parameters_of
from django_helisched.crons.options import checked_arguments
from django_helisched.exceptions import HelischedError
from django_helisched.functions import registered, resolve

if TYPE_CHECKING:
    from datetime import tzinfo

MAX_ARGUMENTS_TEXT: Final = 65_536
_MAX_INSTANT_TEXT = 40


class FunctionField(forms.ChoiceField):
    """A choice of the registered functions; for any other path, the sentence of the registry."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=lambda: [("", "---------"), *((path, path) for path in registered())], **kwargs)

    def offer(self, path: str) -> None:
        """Show ``path`` among the choices too, an alias or one that this process does not know."""
        self.choices = [("", "---------"), *((each, each) for each in sorted({path, *registered()}))]

    def validate(self, value: Any) -> None:
        """Refuse what cannot run, by a sentence that names the path meant."""
        forms.Field.validate(self, value)
        try:
            resolve(value)
        except HelischedError as error:
            raise ValidationError(str(error)) from None


class ArgumentsField(forms.CharField):
    """Keyword arguments as a JSON object, or positional ones as a JSON list."""

    widget = forms.Textarea

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_ARGUMENTS_TEXT, required=False, **kwargs)

    def clean(self, value: Any) -> Any:
        """Return a dict, a list, or None for no text."""
        text = super().clean(value)
        if not text:
            return None
        try:
            given = json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            place = {"line": error.lineno, "column": error.colno, "fault": error.msg}
            raise ValidationError(
                _("This is no JSON at line %(line)d, column %(column)d: %(fault)s.") % place
            ) from None
        except (ValueError, RecursionError):
            raise ValidationError(_("This JSON has a number that is too long, or is nested too deep.")) from None
        if not isinstance(given, dict | list):
            raise ValidationError(
                _('Write a JSON object for keyword arguments, {"day": 1}, or a list for positional ones, [1].')
            )
        try:
            checked_arguments(given)
        except HelischedError as error:
            raise ValidationError(str(error)) from None
        return given


def _refuse_constant(name: str) -> None:
    raise ValidationError(_("%(name)s is no JSON value; write a number, a text or null.") % {"name": name})


def text_of_arguments(fn_path: str, given: Any) -> str:
    """Return stored arguments as JSON to edit, what is named like a secret masked, "" for none."""
    return json.dumps(_masked(fn_path, given), ensure_ascii=False, indent=2) if given else ""


def unmasked(fn_path: str, given: Any, stored: Any) -> Any:
    """Return ``given`` with each mask that was left in place replaced by the stored secret."""
    if given == _masked(fn_path, stored):
        return stored
    return _restored(given, stored)


def _masked(fn_path: str, given: Any) -> Any:
    if not isinstance(given, list):
        return masked(given)
    pairs = zip_longest(given, parameters_of(fn_path)[: len(given)], fillvalue="")
    return [MASK if is_secret(name) else masked(value) for value, name in pairs]


def _restored(given: Any, stored: Any) -> Any:
    if given == MASK and stored is not None:
        return stored
    if isinstance(given, dict) and isinstance(stored, dict):
        return {key: _restored(value, stored.get(key)) for key, value in given.items()}
    if isinstance(given, list) and isinstance(stored, list):
        return [_restored(value, old) for value, old in zip_longest(given, stored[: len(given)])]
    return given


def instant_in(text: str, tz: tzinfo) -> datetime:
    """Return the aware instant of an ISO text; one without an offset is of ``tz``.

    Raises ValidationError for what is no instant, and for a time of the clock that
    never comes or comes twice: an offset says which is meant.
    """
    try:
        moment = datetime.fromisoformat(text[:_MAX_INSTANT_TEXT])
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        first, second = (moment.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1))
    except (ValueError, OverflowError):
        raise ValidationError(
            _("Write an instant such as 2027-03-28 09:30, or 2027-03-28 09:30+02:00 with its distance to UTC.")
        ) from None
    if first != second:
        raise ValidationError(
            _("The clocks of this zone skip or repeat this time; add its distance to UTC, as in 09:30+02:00.")
        )
    return first


def text_of_instant(moment: datetime | None, tz: tzinfo) -> str:
    """Return an instant as ``instant_in`` reads it back, exactly."""
    if moment is None:
        return ""
    try:
        return moment.astimezone(tz).isoformat(" ")
    except (ValueError, OverflowError):
        return moment.isoformat(" ")
