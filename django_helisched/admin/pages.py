"""What every page of ours has in common: read only, pinned to one database, plain GET and POST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, urlencode

import django
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponseBadRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from django.utils.translation import gettext

from django_helisched import wiring
from django_helisched.admin.changelist import SturdyChangeList
from django_helisched.admin.paginator import CappedPaginator
from django_helisched.inspection import fleet
from django_helisched.inspection.rows import alias, read_row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.contrib.admin.views.main import ChangeList
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

    ModelAdmin = admin.ModelAdmin[Any]
    Crumb = tuple[str, object]
else:
    ModelAdmin = admin.ModelAdmin

READING = ("GET", "HEAD")


class ReadOnlyAdmin(ModelAdmin):
    """A list, and a page per row that ``page_of`` fills; nobody adds, changes or deletes rows here."""

    page_template: ClassVar[str] = "helisched/page.html"
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by: ClassVar[Any] = ()
    list_per_page = 100
    paginator = CappedPaginator
    empty_value_display = ""
    # What may stand in the list's address beside the stock words.
    filter_parameters: ClassVar[frozenset[str]] = frozenset()

    class Media:
        css = {"all": ["helisched/hs.css"]}

    # Rights

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows are made by the stores."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are changed by verbs, each with its own permission."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows go when they are pruned."""
        return False

    def may(self, request: HttpRequest, codename: str) -> bool:
        """Tell whether the user has the permission ``codename`` of this app."""
        return bool(request.user.has_perm(f"{self.opts.app_label}.{codename}"))

    # Rows

    def now(self) -> datetime:
        """Return the store's time."""
        return wiring.job_store().now()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows of the pinned database."""
        return super().get_queryset(request).using(alias())

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row with that key, or None for a key that no row can have."""
        if "\x00" in object_id:
            return None
        try:
            key = self.opts.pk.to_python(object_id)
        except ValidationError:
            return None
        return read_row(self.model, key)

    # The list

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that survives damaged rows."""
        return SturdyChangeList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters shown beside the list, and no free lookup: it could read the whole table."""
        return lookup in self.filter_parameters

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, or run an action on keys that are keys."""
        for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
            if not self._is_key(key):
                return HttpResponseBadRequest("A selected row has no valid id.", content_type="text/plain")
        title = capfirst(str(self.opts.verbose_name_plural))
        context = {"title": title, "strip": fleet.silence(self.now())}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def _is_key(self, text: str) -> bool:
        try:
            self.opts.pk.to_python(text)
        except ValidationError:
            return False
        return "\x00" not in text

    # The page of one row

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one row; nothing can be posted to it."""
        if request.method not in READING:
            return HttpResponseNotAllowed(READING)
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            return self.not_found(request, object_id)
        crumbs = [self.list_crumb(request), (self.heading_of(row), None)]
        strip = fleet.silence(self.now())
        context = {"strip": strip, **self.page_of(request, row), **(extra_context or {}), "original": row}
        return self.rendered(request, self.page_template, self.heading_of(row), crumbs, context)

    def heading_of(self, row: Any) -> str:
        """Return what the row is called above its page."""
        return str(row)

    def not_found(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say that there is no such row, and go back to the list."""
        text = gettext("There is no %(kind)s with the id “%(id)s”; it may have been pruned.")
        shown = unquote(object_id).replace("\x00", "\\x00")[:100]
        messages.warning(request, text % {"kind": self.opts.verbose_name, "id": shown})
        return HttpResponseRedirect(self.address_back(request, "changelist"))

    def page_of(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the page of ``row`` shows: ``summary``, and what its template needs beside that."""
        return {"summary": []}

    def rendered(
        self, request: HttpRequest, template: str, title: str, crumbs: Sequence[Crumb], context: dict[str, Any]
    ) -> TemplateResponse:
        """Return the page in the admin's frame."""
        request.current_app = self.admin_site.name  # what reverse() in templates reads
        site = self.admin_site.each_context(request)
        frame = {**site, "title": title, "opts": self.opts, "breadcrumbs": self._breadcrumbs(crumbs)}
        return TemplateResponse(request, template, {**frame, **context})

    # Addresses

    def address(self, view: str, *keys: Any, model: type[Model] | None = None) -> str:
        """Return the address of a view of this model, or of another one of ours, on this site."""
        name = self.opts.model_name if model is None else model._meta.model_name
        args = [quote(key) for key in keys]
        return reverse(f"admin:helisched_{name}_{view}", args=args, current_app=self.admin_site.name)

    def address_back(self, request: HttpRequest, view: str, *keys: Any) -> str:
        """Return the address with the filters of the list that the user came from."""
        preserved = dict(parse_qsl(self.get_preserved_filters(request)))
        url = self.address(view, *keys)
        filters = preserved.get("_changelist_filters", "")
        query = filters if view == "changelist" else urlencode(preserved)
        return f"{url}?{query}" if query else url

    def link(self, model: type[Model], key: Any, text: str) -> SafeString:
        """Return a link to the page of another row, its text alone where this site has no such page."""
        try:
            return format_html('<a href="{}">{}</a>', self.address("change", key, model=model), text)
        except NoReverseMatch:
            return format_html("{}", text)

    def link_to_list(self, model: type[Model], query: dict[str, str], text: str) -> SafeString:
        """Return a link to a filtered list of other rows, its text alone where this site has no such list."""
        try:
            url = self.address("changelist", model=model)
        except NoReverseMatch:
            return format_html("{}", text)
        return format_html('<a href="{}?{}">{}</a>', url, urlencode(query), text)

    def list_crumb(self, request: HttpRequest) -> Crumb:
        """Return the way back to the list as it was filtered."""
        return capfirst(str(self.opts.verbose_name_plural)), self.address_back(request, "changelist")

    def _breadcrumbs(self, crumbs: Sequence[Crumb]) -> SafeString:
        site = self.admin_site.name
        home = (gettext("Home"), reverse("admin:index", current_app=site))
        app_list = reverse("admin:app_list", args=[self.opts.app_label], current_app=site)
        return breadcrumbs([home, (str(self.opts.app_config.verbose_name), app_list), *crumbs])


def breadcrumbs(crumbs: Sequence[Crumb]) -> SafeString:
    """Return the trail in the markup that this Django styles; the last one is the page itself."""
    *before, (here, _) = crumbs
    links = [(format_html('<a href="{}">{}</a>', url, text),) for text, url in before]
    if django.VERSION >= (6, 1):
        items = format_html_join("\n", "<li>{}</li>", links)
        return format_html('<ol class="breadcrumbs">{}\n<li aria-current="page">{}</li></ol>', items, here)
    return format_html('<div class="breadcrumbs">{} › {}</div>', format_html_join(" › ", "{}", links), here)
