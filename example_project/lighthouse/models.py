"""What the keepers write down. Facts about the towers themselves stand in ``towers.py``."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q

from lighthouse.towers import TOWERS, TowerSite


class Tower(models.Model):
    """The lamp of one tower: burning or not, and since when."""

    slug = models.SlugField(primary_key=True, max_length=40)
    lamp_lit = models.BooleanField(default=False)
    lamp_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.site.name

    @property
    def site(self) -> TowerSite:
        """Give the facts: position, zone, light character."""
        return TOWERS[self.slug]


class LogEntry(models.Model):
    """One line of the log book, written by a mutation.

    ``job_id`` has no unique constraint on purpose: were a job's effects ever
    kept twice, the page would show it instead of the database hiding it.
    """

    class Kind(models.TextChoices):
        WATCH = "watch", "watch"
        LAMP = "lamp", "lamp"
        PLAN = "plan", "plan"
        FOG = "fog", "fog"
        NIGHT = "night", "night watch"
        STORM = "storm", "storm"

    tower = models.ForeignKey(Tower, null=True, blank=True, on_delete=models.CASCADE)
    kind = models.CharField(max_length=10, choices=Kind)
    text = models.CharField(max_length=300)
    job_id = models.UUIDField(null=True, blank=True, db_index=True)
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "log entries"

    def __str__(self) -> str:
        return self.text


class LampSwitch(models.Model):
    """One movement of a lamp: when it was planned, and when the work began."""

    class Movement(models.TextChoices):
        LIT = "lit", "lit"
        DARK = "dark", "put out"
        SWEEP = "sweep", "beam swept"

    tower = models.ForeignKey(Tower, on_delete=models.CASCADE)
    movement = models.CharField(max_length=5, choices=Movement)
    planned_at = models.DateTimeField()
    started_at = models.DateTimeField()
    job_id = models.UUIDField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "lamp switches"

    def __str__(self) -> str:
        return f"{self.tower_id} {self.movement} {self.planned_at:%Y-%m-%d %H:%M:%S}"

    @property
    def lateness(self) -> timedelta:
        """Give how long after its plan the movement began."""
        return self.started_at - self.planned_at


class Postcard(models.Model):
    """A picture of one tower, drawn by an action: at least once, so perhaps twice."""

    tower = models.ForeignKey(Tower, on_delete=models.CASCADE)
    svg = models.TextField()
    caption = models.CharField(max_length=200)
    drawn_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.caption


class Seascape(models.Model):
    """A sea drawn out of a Julia set."""

    svg = models.TextField()
    caption = models.CharField(max_length=200)
    drawn_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.caption


class NightWatch(models.Model):
    """One round of calls to every tower; its last report closes it."""

    job_id = models.UUIDField(primary_key=True)
    called = models.PositiveSmallIntegerField()
    reported = models.PositiveSmallIntegerField(default=0)
    silent = models.PositiveSmallIntegerField(default=0)
    called_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-called_at"]
        verbose_name_plural = "night watches"

    def __str__(self) -> str:
        return f"night watch of {self.called_at:%Y-%m-%d %H:%M:%S}"


class Storm(models.Model):
    """The weather: one row, from 0 (calm) to 3 (hurricane)."""

    class Level(models.IntegerChoices):
        CALM = 0, "calm"
        BREEZE = 1, "breeze"
        GALE = 2, "gale"
        HURRICANE = 3, "hurricane"

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    level = models.PositiveSmallIntegerField(choices=Level, default=Level.CALM)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="lighthouse_one_storm"),
            models.CheckConstraint(condition=Q(level__lte=3), name="lighthouse_storm_level"),
        ]

    def __str__(self) -> str:
        return self.get_level_display()
