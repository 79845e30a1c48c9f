from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def client_of(db: None) -> Callable[..., Client]:
    """Give a logged-in client of a staff user with these permissions of the app, and no other."""

    def make(*codenames: str, enforce_csrf_checks: bool = False) -> Client:
        user = User.objects.create_user(f"user{User.objects.count()}", is_staff=True)
        found = Permission.objects.filter(content_type__app_label="helisched", codename__in=codenames)
        assert found.count() == len(codenames)
        user.user_permissions.set(found)
        client = Client(enforce_csrf_checks=enforce_csrf_checks)
        client.force_login(user)
        return client

    return make


@pytest.fixture
def operator(db: None) -> Client:
    """Give a logged-in client that may do everything."""
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client
