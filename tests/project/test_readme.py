"""The README's five minutes, done by the letter in an empty directory."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crash.fleet import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SHELL = "# in python manage.py shell"


def snippets() -> Iterator[tuple[str, str]]:
    """Yield (language, text) of every block of the walk-through, in order."""
    text = (ROOT / "README.md").read_text()
    section = text.split("## Five minutes")[1].split("## More")[0]
    yield from re.findall(r"```(\w+)\n(.*?)```", section, flags=re.DOTALL)


class Walk:
    """A reader who types what the README says."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.printed: list[str] = []
        self.site = place / "site-packages"
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("DJANGO_", "HELISCHED_"))},
            "PYTHONPATH": f"{self.site}{os.pathsep}{place}",
            "PYTHONUNBUFFERED": "1",
        }

    def do(self, language: str, text: str) -> None:
        if language == "console":
            for line in text.splitlines():
                self.type(line.removeprefix("$ "))
        elif text.startswith(SHELL):
            self.run(sys.executable, "manage.py", "shell", "-c", text)
        else:
            self.write(text)

    def write(self, text: str) -> None:
        head = re.match(r"# (\S+\.py)(, at the end)?\n", text)
        assert head, f"a Python block without its file's name: {text[:80]}"
        mode = "a" if head[2] else "w"
        with (self.place / head[1]).open(mode) as file:
            file.write("\n" + text)

    def type(self, line: str) -> None:
        words = line.split()
        if words[:2] == ["pip", "install"]:
            assert words[2:] == ["../django-helisched"]
            options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(self.site)]
            self.run(sys.executable, "-m", "pip", "install", *options, str(ROOT))
        elif words[0] == "django-admin":
            self.run(sys.executable, "-m", "django", *words[1:])
        elif words == ["python", "manage.py", "runscheduler"]:
            self.run_until_it_fired_twice()
        else:
            assert words[0] == "python", f"the README has a command that this test cannot type: {line}"
            self.run(sys.executable, *words[1:])

    def run(self, *command: str) -> None:
        done = subprocess.run(command, cwd=self.place, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        self.printed.append(done.stdout)

    def count(self, rows: str) -> int:
        """Return how many such rows the reader's database has."""
        with closing(sqlite3.connect(self.place / "db.sqlite3", timeout=20)) as database:
            return int(database.execute(f"SELECT COUNT(*) FROM {rows}").fetchone()[0])

    def run_until_it_fired_twice(self) -> None:
        log = self.place / "runscheduler.log"
        with log.open("w") as output:
            command = [sys.executable, "manage.py", "runscheduler"]
            process = subprocess.Popen(command, cwd=self.place, env=self.env, stdout=output, stderr=output)
        try:
            wait_until(lambda: self.count("helisched_cron WHERE fired >= 2") == 1, "the cron fires twice")
            succeeded = "helisched_job WHERE state = 'success'"
            wait_until(lambda: self.count(f"{succeeded} AND attempt_count = 2") == 1, "the retry went through")
            wait_until(lambda: self.count(succeeded) >= 5, "five jobs succeed")
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()
        self.printed.append(log.read_text())


def test_every_snippet_of_the_walk_through_does_what_it_says(tmp_path: Path):
    walk = Walk(tmp_path)
    for language, text in snippets():
        walk.do(language, text)
    # What a job prints comes before it: the summary is the last line.
    once = next(text.splitlines()[-1] for text in walk.printed if '"succeeded"' in text)
    assert json.loads(once)["succeeded"] >= 2
    looked = walk.printed[-1]
    assert int(re.search(r"(\d+) succeeded", looked)[1]) >= 5  # type: ignore[index]
    assert "shop.jobs.send_receipt" in looked
    assert "the mail server hung up" in looked
    assert int(re.search(r"fired (\d+) missed", looked)[1]) >= 2  # type: ignore[index]


def test_the_first_lines_are_the_two_commands():
    first = (ROOT / "README.md").read_text().splitlines()[:6]
    assert [line.split("#")[0].strip() for line in first if line.startswith("$")] == ["$ make demo", "$ make test"]


def test_every_linked_page_is_there():
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target
