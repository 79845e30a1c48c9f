"""manage.py helisched: what it answers, as text and as JSON, and how it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError
from django.test import override_settings

from django_helisched import scheduler, wiring
from django_helisched.models import Attempt, Cron
from django_helisched.testing.clock import ManualClock
from tests.app.jobs import note
from tests.surface.asking import ask, data

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

crons = scheduler.crons
MARCH = datetime(2027, 3, 26, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    clock = ManualClock(MARCH)
    with wiring.replaced(clock=clock):
        yield clock


class TestNext:
    @pytest.fixture(autouse=True)
    def digest(self, clock: ManualClock) -> Cron:
        """Give a cron at half past two at night in Paris."""
        made = crons.create("digest", note, ["x"], expr="30 2 * * *", tz="Europe/Paris")
        return Cron.objects.get(pk=made.id)

    def test_each_fire_is_shown_in_both_zones_with_what_the_clocks_do_to_it(self):
        head, blank, titles, *fires = ask("crons", "next", "digest", "--count", "3")
        assert head == 'digest: "30 2 * * *", Europe/Paris, tests.app.jobs.note'
        assert (blank, titles.split()) == ("", ["Europe/Paris", "UTC", "in"])
        assert [re.split(" {2,}", line) for line in fires] == [
            ["Sat 2027-03-27 02:30:00 +0100", "2027-03-27 01:30:00", "13 h 30 min"],
            [
                "Sun 2027-03-28 03:30:00 +0200",
                "2027-03-28 01:30:00",
                "1 d 13 h",
                "02:30 does not exist on 28 March: fires at 03:30.",
            ],
            [
                "Mon 2027-03-29 02:30:00 +0200",
                "2027-03-29 00:30:00",
                "2 d 12 h",
                "From here on 1 h earlier in UTC.",
            ],
        ]

    def test_json_holds_the_same_and_twenty_are_twenty(self):
        answer = data("crons", "next", "digest", "--count", "20")
        assert (answer["name"], answer["tz"], answer["status"]) == ("digest", "Europe/Paris", "active")
        assert len(answer["next"]) == 20
        assert answer["next"][1] == {
            "due_at": "2027-03-28T01:30:00+00:00",
            "local": "2027-03-28T03:30:00+02:00",
            "note": "02:30 does not exist on 28 March: fires at 03:30.",
        }

    def test_the_first_is_what_the_row_says_and_an_interval_keeps_its_phase(self, clock):
        crons.create("poll", note, ["x"], every=90)
        clock.advance(30)
        answer = data("crons", "next", "poll", "--count", "2")
        assert [fire["due_at"][11:19] for fire in answer["next"]] == ["12:01:30", "12:03:00"]
        assert answer["next_run_at"] == answer["next"][0]["due_at"]
        assert ask("crons", "next", "poll")[0] == "poll: every 1 min 30 s, UTC, tests.app.jobs.note"

    def test_why_it_will_not_fire_is_said_first(self, clock, digest):
        clock.advance(100 * HOUR)
        assert ask("crons", "next", "digest")[1].startswith("Overdue since 2027-03-27 01:30:00 UTC")
        crons.pause("digest", by="ann", reason="holidays")
        assert "Paused since 2027-03-30 16:00:00 UTC by ann: holidays. It does" in ask("crons", "next", "digest")[1]
        Cron.objects.update(enabled=False, archived_at=MARCH, last_error="no")
        told = ask("crons", "next", "digest")[1:5]
        assert [line.split()[0] for line in told] == ["Archived", "Paused", "Not", "Its"]

    def test_a_cron_that_is_over_says_so(self, clock):
        crons.create("once", note, ["x"], every=HOUR, end=MARCH + HOUR)
        clock.advance(2 * HOUR)
        assert ask("crons", "next", "once")[-1] == "It has no further occurrence."

    @pytest.mark.parametrize(
        ("overlap", "words"),
        [
            ("allow", "up to 3 run at once"),
            ("skip", "fires that come meanwhile are left out"),
            ("cancel_previous", "each fire cancels the run before"),
        ],
    )
    def test_runs_longer_than_the_time_between_two_fires_are_told(self, overlap, words):
        made = crons.create("slow", note, ["x"], expr="* * * * *", overlap=overlap)
        job = crons.run_now("slow")
        for number, seconds in ((1, 3), (2, 150)):
            Attempt.objects.create(
                job=job,
                number=number,
                outcome="success",
                started_at=MARCH,
                ended_at=MARCH + timedelta(seconds=seconds),
                worker_id="w",
            )
        [remark] = data("crons", "next", "slow")["remarks"]
        assert remark.startswith("A run took up to 2 min 30 s lately, and two fires are 1 min apart: ")
        assert words in remark
        Attempt.objects.filter(number=2).delete()
        assert data("crons", "next", "slow")["remarks"] == []
        assert made.name == "slow"

    def test_a_cron_of_a_space_is_named_with_it(self):
        crons.create("digest", note, ["x"], every=60, space="acme")
        assert ask("crons", "next", "digest", "--space", "acme")[0].startswith("acme/digest: every 1 min")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["nope"], 'No cron has the name "nope"'),
            (["digest", "--space", "x"], 'in space "x"'),
            (["digest", "--count", "0"], "from 1 to 1000"),
            (["digest", "--count", "1001"], "from 1 to 1000"),
        ],
    )
    def test_what_cannot_be_answered_is_said_in_a_sentence(self, words, said):
        with pytest.raises(CommandError, match=said):
            ask("crons", "next", *words)

    def test_a_row_that_cannot_be_read_points_at_the_place_to_blame(self):
        Cron.objects.update(spec='{"kind":"cron","expr":"61 * * * *"}')
        with pytest.raises(CommandError) as raised:
            ask("crons", "next", "digest")
        assert str(raised.value).splitlines()[-2:] == ["61 * * * *", "^^"]


class TestList:
    def test_every_cron_has_a_line_and_a_broken_one_harms_no_other(self, clock):
        assert ask("crons", "list") == ["No crons are stored. runscheduler stores what the code declares."]
        crons.create("digest", note, ["x"], expr="0 9 * * mon-fri", tz="Europe/Paris")
        crons.create("broken", note, ["x"], every=60, space="acme")
        Cron.objects.filter(name="broken").update(spec="garbage", next_run_at=None, last_error="no")
        crons.create("gone", note, ["x"], every=60)
        crons.delete("gone")
        head, first, second = ask("crons", "list")
        assert head.split()[:3] == ["name", "space", "source"]
        assert " ".join(first.split()) == (
            'digest operator "0 9 * * mon-fri" Europe/Paris 2027-03-29 07:00:00 active 0 0'
        )
        assert " ".join(second.split()) == "broken acme operator unreadable UTC broken 0 0"
        assert [cron["status"] for cron in data("crons", "list", "--archived")["crons"]] == [
            "active",
            "archived",
            "broken",
        ]
        assert [cron["name"] for cron in data("crons", "list", "--space", "acme")["crons"]] == ["broken"]

    def test_each_status_has_a_name(self):
        for name, fields in (
            ("a", {"paused_at": MARCH}),
            ("b", {"enabled": False}),
            ("c", {"next_run_at": None}),
        ):
            crons.create(name, note, ["x"], every=60)
            Cron.objects.filter(name=name).update(**fields)
        assert [cron["status"] for cron in data("crons", "list")["crons"]] == ["paused", "disabled", "over"]


class TestExplain:
    def test_what_is_selected_and_when_it_fires(self):
        lines = ask("crons", "explain", "0 9 1,15 * 5L", "--tz", "Europe/Paris", "--count", "2")
        assert lines[:8] == [
            "0 9 1,15 * 5L",
            "seconds       0",
            "minutes       0",
            "hours         9",
            "months        1-12",
            "days of month 1, 15",
            "weekdays      last fri",
            "Day of month and weekday are both restricted: the cron fires on every day that matches one of them.",
        ]
        assert [line.split()[:3] for line in lines[-2:]] == [
            ["Thu", "2027-04-01", "09:00:00"],
            ["Thu", "2027-04-15", "09:00:00"],
        ]

    def test_every_kind_of_day_is_named(self):
        selects = data("crons", "explain", "*/20 * 10 L jun mon-wed,0")["selects"]
        assert selects == {
            "seconds": ["0", "20", "40"],
            "minutes": ["0-59"],
            "hours": ["10"],
            "months": ["6"],
            "days of month": ["last"],
            "weekdays": ["sun", "mon", "tue", "wed"],
        }

    def test_the_zone_is_the_settings_unless_one_is_given(self):
        with override_settings(HELISCHED={"TZ": "Asia/Tokyo"}), wiring.replaced(clock=ManualClock(MARCH)):
            answer = data("crons", "explain", "@daily")
        assert (answer["tz"], answer["next"][0]["local"]) == ("Asia/Tokyo", "2027-03-27T00:00:00+09:00")
        assert data("crons", "explain", "@daily")["tz"] == "UTC"

    @pytest.mark.parametrize(
        ("words", "said"),
        [(["61 * * * *"], "61"), (["0 9 * * *", "--tz", "Mars/Base"], "Mars/Base"), (["x"], "field")],
    )
    def test_a_bad_one_is_refused_in_a_sentence(self, words, said):
        with pytest.raises(CommandError, match=said):
            ask("crons", "explain", *words)


def test_a_shell_gets_the_exit_codes(child_env):
    def code(*words: str) -> int:
        command = [sys.executable, "-m", "django", "helisched", *words]
        return subprocess.run(command, env=child_env, capture_output=True, check=False).returncode

    assert code("crons", "explain", "@daily") == 0
    assert code("crons", "explain", "nonsense") == 1
    assert code("crons", "wrong") == 2
    assert code() == 2


def test_missing_tables_are_named_with_the_command_that_makes_them(child_env, tmp_path):
    empty = child_env | {"HELISCHED_TEST_DB": "sqlite", "HELISCHED_TEST_NAME": str(tmp_path / "empty.sqlite3")}
    command = [sys.executable, "-m", "django", "helisched", "queues"]
    done = subprocess.run(command, env=empty, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith('is missing in database "default". Run: python manage.py migrate helisched\n')
