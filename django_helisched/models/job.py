"""Job (small and hot), its arguments, and the history of its attempts."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import F, Q
from django.db.models.base import ModelState
from django.db.models.lookups import Exact, IsNull
from django.db.models.signals import post_init, pre_init
from django.utils.translation import gettext_lazy as _

from django_helisched import conf
from django_helisched.jobs.ids import uuid7
from django_helisched.jobs.words import (
    TERMINAL,
    AttemptOutcome,
    FailureReason,
    Hold,
    Kind,
    State,
    Trigger,
    UniqueUntil,
)
from django_helisched.models.fields import JsonTextField, KeyField, PartialIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from enum import StrEnum
    from uuid import UUID

    from django_helisched.jobs.job import JobSnapshot

PATH_LENGTH = 255
QUEUE_LENGTH = 100
SPACE_LENGTH = 100
KEY_LENGTH = 255
ENDED = sorted(state.value for state in TERMINAL)


def choices(words: type[StrEnum]) -> list[tuple[str, str]]:
    """Return the choices of a column that holds one of ``words``."""
    return [(word.value, word.value.replace("_", " ")) for word in words]


class Job(models.Model):
    """One unit of work. Written by the stores alone; read freely."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    fn_path = KeyField(max_length=PATH_LENGTH)
    kind = KeyField(max_length=8, choices=choices(Kind))
    at_most_once = models.BooleanField(default=False)
    state = KeyField(max_length=11, choices=choices(State), default=State.PENDING.value)
    failure_reason = KeyField(max_length=16, choices=choices(FailureReason), default="", blank=True)
    hold = KeyField(max_length=16, choices=choices(Hold), default="", blank=True)
    held_at = models.DateTimeField(null=True, blank=True)
    queue = KeyField(max_length=QUEUE_LENGTH, default="default")
    priority = models.SmallIntegerField(default=0)
    due_at = models.DateTimeField()
    next_run_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    timeout = models.DurationField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    max_failures = models.IntegerField(default=3)
    losses = models.IntegerField(default=0)
    attempt_count = models.IntegerField(default=0)
    lease_holder = KeyField(max_length=128, null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    key_digest = KeyField(max_length=64, null=True, blank=True)
    idempotency_key = KeyField(max_length=KEY_LENGTH, default="", blank=True)
    unique_until = KeyField(max_length=8, choices=choices(UniqueUntil), default=UniqueUntil.PRUNED.value)
    limit_key = KeyField(max_length=200, default="", blank=True)
    overlap_key = KeyField(max_length=200, default="", blank=True)
    app_version = KeyField(max_length=64, default="", blank=True)
    name = KeyField(max_length=200, default="", blank=True)
    space = KeyField(max_length=SPACE_LENGTH, default="", blank=True)
    trigger = KeyField(max_length=11, choices=choices(Trigger), default=Trigger.API.value)
    has_args = models.BooleanField(default=False)
    on_complete = KeyField(max_length=PATH_LENGTH, default="", blank=True)
    parent = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="children",
    )
    cron = models.ForeignKey(
        "helisched.Cron",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="jobs",
    )
    batch = models.ForeignKey(
        "helisched.Batch",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="jobs",
    )
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, default="", blank=True)

    if TYPE_CHECKING:
        parent_id: UUID | None
        cron_id: UUID | None
        batch_id: UUID | None

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        permissions = [
            ("requeue_job", "Can requeue jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("view_job_args", "Can view the arguments of jobs"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["key_digest"], name="helisched_job_key"),
            # Two truth values that are equal: every statement reads its checks anew, and these are short.
            models.CheckConstraint(
                name="helisched_job_leased",
                condition=Q(Exact(IsNull(F("lease_holder"), rhs=False), Exact(F("state"), State.IN_PROGRESS.value)))
                & Q(Exact(IsNull(F("lease_expires_at"), rhs=False), IsNull(F("lease_holder"), rhs=False))),
            ),
            # With the one above: pending or in progress, and nothing else, is not completed.
            models.CheckConstraint(
                name="helisched_job_completed",
                condition=Q(
                    Exact(
                        IsNull(F("completed_at"), rhs=True),
                        Q(state=State.PENDING.value) | Q(lease_holder__isnull=False),
                    )
                ),
            ),
        ]
        indexes = [
            # claim: the due rows of one (queue, priority), oldest first.
            PartialIndex(
                fields=["state", "hold", "queue", "-priority", "next_run_at", "id"],
                where=Q(state=State.PENDING.value),
                name="helisched_job_hot",
            ),
            # sweep reads in_progress, the admin lists one state newest first, prune walks the oldest.
            models.Index(fields=["state", "id"], name="helisched_job_state"),
            # admit: who waits for a limit in each queue, and who is out under it.
            PartialIndex(
                fields=["state", "hold", "limit_key", "queue", "-priority", "next_run_at", "id"],
                where=Q(~Q(limit_key=""), completed_at__isnull=True),
                name="helisched_job_limit",
            ),
            # admit: who waits for an earlier job of its cron, oldest first.
            PartialIndex(
                fields=["hold", "overlap_key", "id"],
                where=Q(hold=Hold.OVERLAP.value),
                name="helisched_job_overlap",
            ),
            # cancel walks the tree.
            PartialIndex(fields=["parent"], where=Q(parent__isnull=False), name="helisched_job_parent"),
            # firing asks whether a job of the cron is live; the admin lists a cron's jobs.
            PartialIndex(fields=["cron", "state", "id"], where=Q(cron__isnull=False), name="helisched_job_cron"),
            # expire takes what nobody may start any more.
            PartialIndex(
                fields=["expires_at"],
                where=Q(state=State.PENDING.value, expires_at__isnull=False),
                name="helisched_job_expiry",
            ),
            # a batch counts its jobs.
            PartialIndex(fields=["batch", "state"], where=Q(batch__isnull=False), name="helisched_job_batch"),
        ]

    def __str__(self) -> str:
        return f"{self.name or self.fn_path} ({self.id})"

    @classmethod
    def from_snapshot(cls, snapshot: JobSnapshot) -> Job:
        """Return the instance for a record that a store handed out; nothing is read."""
        if _is_watched(cls):
            return cls.alike(snapshot, [snapshot.id])[0]
        # What from_db does, without asking each field and each signal: an enqueue makes one of these.
        job = cls.__new__(cls)
        state = ModelState()
        state.adding, state.db = False, conf.get_settings().database
        job.__dict__ = {"_state": state, **vars(snapshot)}  # the record's fields are the columns
        return job

    @classmethod
    def alike(cls, snapshot: JobSnapshot, ids: Sequence[UUID]) -> list[Job]:
        """Return an instance for each id that is otherwise as the record; nothing is read."""
        names, values_of = _names(cls)
        values = dict(zip(names, values_of(snapshot), strict=True))
        database = conf.get_settings().database
        if _is_watched(cls):
            return [cls.from_db(database, names, list((values | {"id": job_id}).values())) for job_id in ids]
        jobs = []
        for job_id in ids:
            job = cls.__new__(cls)
            state = ModelState()
            state.adding, state.db = False, database
            # The order of a fresh dict is the order of the fields.
            job.__dict__.update(values, id=job_id, _state=state)
            jobs.append(job)
        return jobs


def _is_watched(model: type[Job]) -> bool:
    # An empty list is known at once; to ask who listens to a model costs more than to make an instance.
    return any(signal.receivers and signal.has_listeners(model) for signal in (pre_init, post_init))


@cache
def _names(model: type[Job]) -> tuple[list[str], Callable[[JobSnapshot], tuple[Any, ...]]]:
    names = [field.attname for field in model._meta.concrete_fields]
    return names, attrgetter(*names)


class JobArgs(models.Model):
    """The payload of a job, apart from the row that every claim scans."""

    job = models.OneToOneField(
        Job, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="payload"
    )
    args = JsonTextField(default=list)
    kwargs = JsonTextField(default=dict)
    context = JsonTextField(null=True)
    options = JsonTextField(default=dict)
    meta = JsonTextField(default=dict)

    class Meta:
        verbose_name = _("job arguments")
        verbose_name_plural = _("job arguments")

    def __str__(self) -> str:
        return f"arguments of {self.job_id}"


class Attempt(models.Model):
    """How one attempt of a job ended. Written once, by whoever ended it; never changed."""

    job = models.ForeignKey(
        Job, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="history"
    )
    number = models.IntegerField()
    outcome = KeyField(max_length=8, choices=choices(AttemptOutcome))
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    worker_id = KeyField(max_length=128)
    error_class = models.CharField(max_length=255, default="", blank=True)
    error = models.TextField(default="", blank=True)
    traceback = models.TextField(default="", blank=True)
    result = JsonTextField(null=True)
    log = models.TextField(default="", blank=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="helisched_attempt_number")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id}"
