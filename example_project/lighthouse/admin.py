from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from lighthouse.models import LampSwitch, LogEntry, NightWatch, Postcard, Storm, Tower

if TYPE_CHECKING:
    from django.http import HttpRequest


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only jobs write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Tower)
class TowerAdmin(ReadOnlyAdmin):
    list_display = ["slug", "__str__", "lamp_lit", "lamp_since"]


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    list_display = ["written_at", "tower", "kind", "text", "job_id"]
    list_filter = ["kind"]
    show_full_result_count = False


@admin.register(LampSwitch)
class LampSwitchAdmin(ReadOnlyAdmin):
    list_display = ["tower", "movement", "planned_at", "started_at"]
    list_filter = ["movement"]
    show_full_result_count = False


@admin.register(Postcard)
class PostcardAdmin(ReadOnlyAdmin):
    list_display = ["tower", "caption", "drawn_at"]
    fields = ["tower", "caption", "drawn_at"]


@admin.register(NightWatch)
class NightWatchAdmin(ReadOnlyAdmin):
    list_display = ["called_at", "called", "reported", "silent", "closed_at"]


@admin.register(Storm)
class StormAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["__str__", "level"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
