# ruff: noqa: PT009 # Django's runner explains a failed assertEqual, and no bare assert.
from __future__ import annotations

from django.test import Client, TestCase
from django.urls import reverse

from django_helisched.models import Job
from lighthouse.clock import utc_now
from lighthouse.jobs import draw_postcard, draw_sea
from lighthouse.models import LogEntry, Postcard, Seascape, Storm
from lighthouse.towers import SITES


def write(text: str) -> None:
    LogEntry.objects.create(kind=LogEntry.Kind.WATCH, text=text, tower_id="fastnet", written_at=utc_now())


class CoastTests(TestCase):
    def test_the_page_of_the_first_minute_names_every_tower(self) -> None:
        response = self.client.get("/")
        self.assertEqual(response.status_code, 200)
        for site in SITES:
            self.assertContains(response, site.name)
        self.assertContains(response, "No postcard drawn yet.")

    def test_a_full_page_shows_log_postcards_and_sea(self) -> None:
        write("sun up")
        draw_postcard("fastnet")
        draw_sea()
        response = self.client.get("/")
        self.assertContains(response, "sun up")
        self.assertContains(response, reverse("lighthouse:postcard", args=[Postcard.objects.get().pk]))
        self.assertContains(response, reverse("lighthouse:seascape", args=[Seascape.objects.get().pk]))

    def test_text_from_the_database_is_escaped(self) -> None:
        write("<script>alert(1)</script>")
        response = self.client.get("/")
        self.assertNotContains(response, "<script")
        self.assertContains(response, "&lt;script&gt;alert(1)&lt;/script&gt;")

    def test_the_page_needs_no_script_no_style_attribute_and_no_other_host(self) -> None:
        response = self.client.get("/")
        for forbidden in ("<script", "<style", "style=", "//cdn", "https://"):
            self.assertNotContains(response, forbidden)
        self.assertIn("default-src 'none'", response["Content-Security-Policy"])

    def test_the_page_reloads_itself_only_when_asked(self) -> None:
        self.assertNotContains(self.client.get("/"), 'http-equiv="refresh"')
        self.assertContains(self.client.get("/?live=1"), 'http-equiv="refresh"')

    def test_a_line_written_twice_is_shown(self) -> None:
        job = "0190b5d2-0000-7000-8000-000000000000"
        for _ in range(2):
            LogEntry.objects.create(
                kind=LogEntry.Kind.FOG, text="horn", tower_id="morro", job_id=job, written_at=utc_now()
            )
        self.assertEqual(self.client.get("/").context["ledger"].twice, 1)


class PictureTests(TestCase):
    def test_a_postcard_is_served_as_a_picture_that_may_load_nothing(self) -> None:
        draw_postcard("morro")
        response = self.client.get(reverse("lighthouse:postcard", args=[Postcard.objects.get().pk]))
        self.assertEqual(response["Content-Type"], "image/svg+xml")
        self.assertEqual(response["Content-Security-Policy"], "default-src 'none'")
        self.assertIn(b"Castillo del Morro", response.content)

    def test_a_picture_that_is_gone_is_not_found(self) -> None:
        self.assertEqual(self.client.get("/postcards/4711.svg").status_code, 404)


class StormTests(TestCase):
    def test_the_slider_changes_the_weather(self) -> None:
        self.assertRedirects(self.client.post("/storm/", {"level": "2"}), "/")
        self.assertEqual(Storm.objects.get().level, Storm.Level.GALE)

    def test_a_level_that_does_not_exist_changes_nothing(self) -> None:
        for level in ("4", "-1", "", "gale"):
            self.assertEqual(self.client.post("/storm/", {"level": level}).status_code, 400)
        self.assertEqual(Storm.objects.get().level, Storm.Level.CALM)

    def test_a_post_without_the_csrf_token_is_refused(self) -> None:
        for path in ("/storm/", "/storm/cut/"):
            self.assertEqual(Client(enforce_csrf_checks=True).post(path, {"level": "3"}).status_code, 403)

    def test_a_get_changes_nothing(self) -> None:
        self.assertEqual(self.client.get("/storm/?level=3").status_code, 405)

    def test_only_a_hurricane_cuts_a_cable(self) -> None:
        self.client.post("/storm/cut/")
        self.assertFalse(Job.objects.exists())
        Storm.objects.update(level=Storm.Level.HURRICANE)
        self.assertContains(self.client.get("/"), "kill a worker")
        self.client.post("/storm/cut/")
        self.assertEqual(Job.objects.get().fn_path, "lighthouse.jobs.cut_cable")
