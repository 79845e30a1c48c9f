"""The public page, its pictures, and the two levers of the weather."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from lighthouse.clock import utc_now
from lighthouse.jobs import cut_cable
from lighthouse.models import Postcard, Seascape, Storm
from lighthouse.page import coast_context
from lighthouse.storm import storm_level

if TYPE_CHECKING:
    from django.db.models import Model

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PICTURE_POLICY = "default-src 'none'"
LIVE_SECONDS = 5


class StormForm(forms.Form):
    """The slider."""

    level = forms.TypedChoiceField(choices=Storm.Level.choices, coerce=int)


@never_cache
@require_safe
def coast(request: HttpRequest) -> HttpResponse:
    """Show the coast. With ``?live=1`` the page reloads itself, without a script."""
    context = coast_context(utc_now())
    context["live"] = LIVE_SECONDS if request.GET.get("live") == "1" else 0
    response = render(request, "lighthouse/coast.html", context)
    response["Content-Security-Policy"] = PAGE_POLICY
    return response


@require_POST
def set_storm(request: HttpRequest) -> HttpResponse:
    """Change the weather."""
    form = StormForm(request.POST)
    if not form.is_valid():
        return HttpResponse("The level of the storm is 0, 1, 2 or 3.", status=400, content_type="text/plain")
    level = Storm.Level(form.cleaned_data["level"])
    Storm.objects.update_or_create(pk=1, defaults={"level": level})
    messages.info(request, f"The weather is now: {level.label}.")
    return redirect("lighthouse:coast")


@require_POST
def order_cable_cut(request: HttpRequest) -> HttpResponse:
    """Enqueue the job that kills its worker; only a hurricane is strong enough."""
    if storm_level() < Storm.Level.HURRICANE:
        messages.warning(request, "The sea is too calm to cut a cable: call a hurricane first.")
    else:
        job = cut_cable.enqueue()
        messages.info(request, f"Job {job.id} will cut the cable of the worker that takes it.")
    return redirect("lighthouse:coast")


@require_safe
def postcard(request: HttpRequest, pk: int) -> HttpResponse:
    """Give one postcard."""
    return _picture(Postcard, pk)


@require_safe
def seascape(request: HttpRequest, pk: int) -> HttpResponse:
    """Give one seascape."""
    return _picture(Seascape, pk)


def _picture(model: type[Model], pk: int) -> HttpResponse:
    row = get_object_or_404(model, pk=pk)
    response = HttpResponse(row.svg, content_type="image/svg+xml")  # type: ignore[attr-defined]
    response["Content-Security-Policy"] = PICTURE_POLICY
    response["Cache-Control"] = "private, max-age=3600, immutable"
    return response
