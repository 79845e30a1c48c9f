"""What operators watch and steer: queues, limits, batches, progress, workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_helisched import conf
from django_helisched.jobs.ids import uuid7
from django_helisched.models.fields import JsonTextField, KeyField
from django_helisched.models.job import PATH_LENGTH, QUEUE_LENGTH, SPACE_LENGTH, Job

if TYPE_CHECKING:
    from django_helisched.jobs.batch import BatchSnapshot


class Queue(models.Model):
    """The pause switch of one queue. A queue without a row is running."""

    name = KeyField(max_length=QUEUE_LENGTH, primary_key=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=150, default="", blank=True)
    reason = models.CharField(max_length=300, default="", blank=True)
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")

    def __str__(self) -> str:
        return f"{self.name}"


class Limit(models.Model):
    """How many jobs of one key may be out at once. Who is out is read from the jobs.

    ``declared_at`` is when the process began whose code says so: an older one changes nothing.
    """

    key = KeyField(max_length=200, primary_key=True)
    capacity = models.IntegerField()
    declared_at = models.DateTimeField()

    class Meta:
        verbose_name = _("limit")
        verbose_name_plural = _("limits")

    def __str__(self) -> str:
        return f"{self.key}"


class Batch(models.Model):
    """A set of jobs with one job that runs when all of them have ended. Counted when it is complete."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = KeyField(max_length=200, default="", blank=True)
    space = KeyField(max_length=SPACE_LENGTH, default="", blank=True)
    on_complete = KeyField(max_length=PATH_LENGTH, default="", blank=True)
    context = JsonTextField(null=True)
    options = JsonTextField(default=dict)
    succeeded = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    canceled = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("batch")
        verbose_name_plural = _("batches")

    def __str__(self) -> str:
        return self.name or str(self.id)

    @classmethod
    def from_snapshot(cls, snapshot: BatchSnapshot) -> Batch:
        """Return the instance for a record that a store handed out; nothing is read."""
        names = [field.attname for field in cls._meta.concrete_fields]
        return cls.from_db(conf.get_settings().database, names, [getattr(snapshot, name) for name in names])


class Progress(models.Model):
    """How far a running job says it has come."""

    job = models.OneToOneField(
        Job, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="progress"
    )
    fence = models.BigIntegerField()
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True)
    message = models.CharField(max_length=300, default="", blank=True)
    updated_at = models.DateTimeField()

    class Meta:
        verbose_name = _("progress")
        verbose_name_plural = _("progress")

    def __str__(self) -> str:
        return f"{self.done}/{self.total}"


class Worker(models.Model):
    """A driver process as it last reported itself. For people and health, never for correctness."""

    id = KeyField(max_length=128, primary_key=True)
    host = models.CharField(max_length=255, default="", blank=True)
    pid = models.IntegerField(default=0)
    started_at = models.DateTimeField()
    last_seen = models.DateTimeField()
    version = models.CharField(max_length=64, default="", blank=True)
    tzdata_version = models.CharField(max_length=16, default="", blank=True)
    functions = JsonTextField(default=list)
    queues = JsonTextField(default=list)
    declarations = JsonTextField(default=list)
    seats = models.IntegerField(default=0)
    in_flight = models.IntegerField(default=0)
    state = KeyField(max_length=8, default="running")

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return f"{self.id}"
