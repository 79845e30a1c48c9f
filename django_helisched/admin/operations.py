"""The operator's verbs as buttons and pages: GET asks, POST does, each with its own permission."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext_lazy as _

from django_helisched.admin.pages import READING, ReadOnlyAdmin
from django_helisched.admin.reports import LIMIT, Order

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.functional import _StrPromise

    Text = str | _StrPromise


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One verb. ``obstacle`` says why it cannot be done to a row, or "".

    ``perform`` changes the rows of an Order, logs each change and tells the user.
    """

    name: str
    label: Text
    permission: str
    question: Text
    obstacle: Callable[[Any], Text]
    perform: Callable[[Order], None]
    asks_reason: bool = False
    is_grave: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button of a page: a link to the confirmation, or the reason why there is none."""

    label: Text
    url: str
    obstacle: Text
    is_grave: bool


class ReasonForm(forms.Form):
    """Why an operator does it; shown to the next one."""

    reason = forms.CharField(label=_("Reason"), required=False, max_length=300, widget=forms.TextInput({"size": 60}))


class OperableAdmin(ReadOnlyAdmin):
    """A read-only page with verbs."""

    operations: ClassVar[tuple[Operation, ...]] = ()
    selection_limit: ClassVar[int] = LIMIT

    def get_urls(self) -> list[URLPattern]:
        """Add a confirmation page for each verb."""
        return [
            path(
                f"<path:object_id>/{operation.name.replace('_', '-')}/",
                self.admin_site.admin_view(partial(self.confirm_view, operation=operation)),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{operation.name}",
            )
            for operation in self.operations
        ] + super().get_urls()

    def buttons_of(self, request: HttpRequest, row: Any) -> list[Button]:
        """Return the buttons that the user may press, those out of place with the reason."""
        return [
            Button(
                label=operation.label,
                url=self.address_back(request, operation.name, row.pk),
                obstacle=operation.obstacle(row),
                is_grave=operation.is_grave,
            )
            for operation in self.operations
            if self.may(request, operation.permission)
        ]

    def confirm_view(self, request: HttpRequest, object_id: str, *, operation: Operation) -> HttpResponse:
        """Ask on GET and change nothing; do it on POST and go back to the row's page."""
        if request.method not in {*READING, "POST"}:
            return HttpResponseNotAllowed([*READING, "POST"])
        row = self.get_object(request, unquote(object_id))
        if not (self.has_view_permission(request, row) and self.may(request, operation.permission)):
            raise PermissionDenied
        if row is None:
            return self.not_found(request, object_id)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            operation.perform(Order(request, [row.pk], form.cleaned_data["reason"]))
            return HttpResponseRedirect(self.address_back(request, "change", row.pk))
        return self._confirmation(request, row, operation, form)

    def _confirmation(self, request: HttpRequest, row: Any, operation: Operation, form: ReasonForm) -> HttpResponse:
        page = self.address_back(request, "change", row.pk)
        heading = self.heading_of(row)
        title = f"{operation.label}: {heading}"
        crumbs = [self.list_crumb(request), (heading, page), (str(operation.label), None)]
        context = {
            "operation": operation,
            "obstacle": operation.obstacle(row),
            "form": form if operation.asks_reason else None,
            "row": row,
            "back": page,
        }
        return self.rendered(request, "helisched/confirm.html", title, crumbs, context)

    def perform_on_selection(
        self, request: HttpRequest, queryset: QuerySet[Any], operation: Operation, reason: str = ""
    ) -> None:
        """Do it to the ticked rows, or to all that match, but to no more than ``selection_limit``.

        Ticked rows are taken by their keys, whether or not they still match
        the list's filters: a row that changed meanwhile is reported, not dropped.
        """
        if not self.may(request, operation.permission):
            raise PermissionDenied
        if request.POST.get("select_across", "0") == "1":
            keys = list(queryset.values_list("pk", flat=True)[: self.selection_limit + 1])
        else:
            ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
            keys = list(dict.fromkeys(self.opts.pk.to_python(key) for key in ticked))
        if not keys:
            messages.warning(request, _("No row matches any more; nothing was changed."))
            return
        taken = keys[: self.selection_limit]
        operation.perform(Order(request, taken, reason, is_cut=len(taken) < len(keys)))
