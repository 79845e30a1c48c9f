"""Cron (what is to happen again and again) and Fire (what became of each occurrence)."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_helisched.crons.words import CatchUp, FireOutcome, Overlap
from django_helisched.jobs.ids import uuid7
from django_helisched.models.fields import JsonTextField, KeyField, PartialIndex
from django_helisched.models.job import PATH_LENGTH, QUEUE_LENGTH, SPACE_LENGTH, Job, choices

SOURCE_LENGTH = 80
NAME_LENGTH = 150


class Cron(models.Model):
    """One recurring schedule. ``next_run_at`` is its truth, moved by compare-and-set on ``version``."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = KeyField(max_length=SOURCE_LENGTH)
    space = KeyField(max_length=SPACE_LENGTH, default="", blank=True)
    name = KeyField(max_length=NAME_LENGTH)
    spec = models.TextField()
    tz = KeyField(max_length=64, default="UTC")
    catch_up = KeyField(max_length=9, choices=choices(CatchUp), default=CatchUp.FIRE_ONCE.value)
    overlap = KeyField(max_length=15, choices=choices(Overlap), default=Overlap.ALLOW.value)
    jitter = models.DurationField(default=timedelta(0))
    start = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    anchor = models.DateTimeField()
    fn_path = KeyField(max_length=PATH_LENGTH)
    args = JsonTextField(default=list, blank=True)
    kwargs = JsonTextField(default=dict, blank=True)
    enabled = models.BooleanField(default=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=150, default="", blank=True)
    pause_reason = models.CharField(max_length=300, default="", blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    queue = KeyField(max_length=QUEUE_LENGTH, null=True, blank=True)
    priority = models.SmallIntegerField(null=True, blank=True)
    max_failures = models.IntegerField(null=True, blank=True)
    next_run_at = models.DateTimeField(null=True, blank=True)
    last_fire_at = models.DateTimeField(null=True, blank=True)
    fired = models.BigIntegerField(default=0)
    missed = models.BigIntegerField(default=0)
    counted_since = models.DateTimeField()
    version = models.BigIntegerField(default=1)
    declared_by = models.CharField(max_length=128, default="", blank=True)
    declared_at = models.DateTimeField()
    tzdata_version = models.CharField(max_length=16, default="", blank=True)
    last_error = models.CharField(max_length=500, default="", blank=True)

    class Meta:
        verbose_name = _("cron")
        verbose_name_plural = _("crons")
        permissions = [("pause_cron", "Can pause and resume crons"), ("run_cron", "Can run crons now")]
        constraints = [models.UniqueConstraint(fields=["source", "space", "name"], name="helisched_cron_name")]
        indexes = [
            # due: the crons to fire, soonest first.
            PartialIndex(
                fields=["next_run_at"],
                where=Q(next_run_at__isnull=False, enabled=True, paused_at__isnull=True, archived_at__isnull=True),
                name="helisched_cron_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.space}/{self.name}" if self.space else self.name


class Fire(models.Model):
    """What became of one occurrence, or of a run of missed ones."""

    cron = models.ForeignKey(
        Cron, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="fires"
    )
    due_at = models.DateTimeField()
    outcome = KeyField(max_length=15, choices=choices(FireOutcome))
    count = models.BigIntegerField(default=1)
    last_due_at = models.DateTimeField()
    job = models.ForeignKey(
        Job, null=True, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    lateness = models.DurationField(default=timedelta(0))
    reason = models.CharField(max_length=300, default="", blank=True)
    decided_at = models.DateTimeField()

    class Meta:
        verbose_name = _("fire")
        verbose_name_plural = _("fires")
        constraints = [models.UniqueConstraint(fields=["cron", "due_at"], name="helisched_fire_occurrence")]

    def __str__(self) -> str:
        return f"{self.cron_id} at {self.due_at}"
