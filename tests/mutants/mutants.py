"""The package, broken on purpose: each mutant breaks one promise, and names the test that must see it.

``make mutants`` copies the package, applies one at a time, and runs that test.
"""

from __future__ import annotations

from dataclasses import dataclass

STORES = "django_helisched/stores/orm"
WAKING = "django_helisched/driver/waking"
DRIVER = "django_helisched/driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A passage that stands in a file exactly once, and what to put in its place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One way to break the package. ``database`` names the only one on which it can be seen."""

    edits: tuple[Edit, ...]
    caught_by: str
    database: str = ""


def mutant(file: str, old: str, new: str, *, caught_by: str, database: str = "") -> Mutant:
    """Return a mutant of one edit."""
    return Mutant(edits=(Edit(file=file, old=old, new=new),), caught_by=caught_by, database=database)


JOB_STORE = "tests/contract/test_jobs.py::TestJobStore"
KILLED = "tests/crash/test_each_statement.py::test_a_kill_at_any_statement_changes_nothing_about_the_end"

MUTANTS: dict[str, Mutant] = {
    "settle looks at no fence": Mutant(
        edits=(
            Edit(file=f"{STORES}/ending.py", old="AND fence = %s{unasked}", new="AND fence >= 0 * %s{unasked}"),
            Edit(file=f"{STORES}/successes.py", old="AND fence = mine_fence", new="AND fence >= 0 * mine_fence"),
            Edit(file=f"{STORES}/successes.py", old='if row["fence"] == fences[row["id"]]', new="if fences"),
            Edit(file=f"{STORES}/single_success.py", old="AND fence = %s", new="AND fence >= 0 * %s"),
        ),
        caught_by="tests/races/test_cancel.py::test_a_settlement_that_slept_through_cancel_requeue_and_claim_is_lost",
    ),
    "the end of a mutation looks at no fence": mutant(
        "django_helisched/migrations/0002_end_of_a_mutation.py",
        "fence = given_fence AND state = 'in_progress' AND cancel",
        "state = 'in_progress' AND cancel",
        caught_by="tests/races/test_commit.py::test_a_lost_claim_is_answered_whether_or_not_the_transaction_ends_with_it",
        database="postgres",
    ),
    "the end of a mutation may read the whole table": mutant(
        "django_helisched/migrations/0002_end_of_a_mutation.py",
        " SET enable_seqscan = off",
        "",
        caught_by="tests/races/test_commit.py"
        "::test_an_end_whose_plan_was_made_for_a_short_table_does_not_read_all_of_a_long_one",
        database="postgres",
    ),
    "settle ends the job in one transaction and writes the rest in others": Mutant(
        edits=(
            Edit(
                file=f"{STORES}/settling.py",
                old="    with _joined(connection, settlements), completing",
                new="    with nullcontext(), completing",
            ),
            Edit(
                file=f"{STORES}/settling.py",
                old="with transaction.atomic(using=connection.alias):",
                new="with nullcontext():",
            ),
        ),
        caught_by=f"{KILLED}[settle-after]",
    ),
    "enqueue stores the job after the commit": mutant(
        f"{STORES}/jobs.py",
        "        stored = once_more(self._alias, lambda: inserting.enqueue(self._alias, jobs))\n"
        "        self._tell.due(any(one.created for one in stored))\n"
        "        return stored\n",
        "        from django.db import transaction\n\n"
        "        from django_helisched.jobs.job import Enqueued\n"
        "        from django_helisched.stores.orm.new_rows import new_row\n\n"
        "        transaction.on_commit(lambda: inserting.enqueue(self._alias, jobs), using=self._alias)\n"
        "        return [Enqueued(job=new_row(job), created=True) for job in jobs]\n",
        caught_by=f"{KILLED}[enqueue in a transaction-after]",
    ),
    "fire moves the cron in one transaction and stores the jobs in another": mutant(
        f"{STORES}/firing.py",
        "    with transaction.atomic(using=alias), completing_batches(alias, new_id=new_id, now=now):\n"
        "        if not _move(alias, cron, plan):\n"
        "            return False\n",
        "    if not _move(alias, cron, plan):\n        return False\n    with transaction.atomic(using=alias):\n",
        caught_by=f"{KILLED}[fire one-after]",
    ),
    "crons that are fired together move in one transaction, and their jobs are stored in another": mutant(
        f"{STORES}/firing.py",
        "        _store(alias, [firing for firing in firings if moved[firing.cron.id]], now)\n",
        "    _store(alias, [firing for firing in firings if moved[firing.cron.id]], now)\n",
        caught_by=f"{KILLED}[fire two together-after]",
    ),
    "fire compares no version": mutant(
        f"{STORES}/firing.py",
        "AND version = %s AND enabled",
        "AND version >= 0 * %s AND enabled",
        caught_by="tests/races/test_crons.py::test_a_firing_that_saw_the_cron_before_its_arguments_changed_is_refused",
    ),
    "a heartbeat renews nothing": mutant(
        f"{STORES}/holding.py",
        ".update(lease_expires_at=lease_expires_at)",
        ".count()",
        caught_by="tests/races/test_sweep.py"
        "::test_a_lease_that_is_renewed_after_a_sweep_saw_it_lapsed_is_not_taken_back",
    ),
    "claim looks at no state": mutant(
        f"{STORES}/claim_statement.py",
        "f\"state = 'pending' AND hold = '' AND {place}",
        "f\"hold = '' AND {place}",
        caught_by="tests/races/test_claim.py::test_of_two_claims_that_saw_the_same_job_one_takes_it",
    ),
    "the parent is a foreign key of the database": Mutant(
        edits=(
            Edit(
                file="django_helisched/models/job.py",
                old='        db_constraint=False,\n        db_index=False,\n        related_name="children",\n',
                new='        related_name="children",\n',
            ),
            Edit(
                file="django_helisched/migrations/0001_initial.py",
                old="                db_constraint=False,\n"
                "                db_index=False,\n"
                "                null=True,\n"
                "                on_delete=django.db.models.deletion.DO_NOTHING,\n"
                '                related_name="children",\n',
                new="                null=True,\n"
                "                on_delete=django.db.models.deletion.DO_NOTHING,\n"
                '                related_name="children",\n',
            ),
        ),
        caught_by="tests/races/test_heartbeat.py"
        "::test_a_mutation_that_enqueues_children_holds_up_no_heartbeat_of_its_batch",
        database="mariadb",
    ),
    "sweep looks at no fence": mutant(
        f"{STORES}/sweeping.py",
        "if job.state != State.IN_PROGRESS or _lapse_of(job) != lapses[job.id]:",
        "if job.state != State.IN_PROGRESS:",
        caught_by="tests/races/test_sweep.py::test_a_sweep_that_comes_late_leaves_the_next_claim_alone",
    ),
    "sweep leaves the family of a canceled job alone": mutant(
        f"{STORES}/sweeping.py",
        "        cancel_descendants(alias, canceled, new_id=new_id, now=now)\n",
        "",
        caught_by="tests/races/test_family.py"
        "::test_a_child_that_slips_past_a_cancel_is_canceled_when_its_parent_is_swept",
    ),
    "cancel ignores a running job": mutant(
        f"{STORES}/operating.py",
        "            Job.objects.using(alias).filter(pk=job.id).update(cancel_requested_at=now)\n",
        "            pass\n",
        caught_by="tests/races/test_cancel.py::test_a_cancel_that_comes_just_before_the_settlement_wins",
    ),
    "settle ignores a cancel request": Mutant(
        edits=(
            Edit(file=f"{STORES}/ending.py", old='" AND cancel_requested_at IS NULL"', new='""'),
            Edit(file=f"{STORES}/success_rows.py", old=" AND cancel_requested_at IS NULL", new=""),
        ),
        caught_by="tests/races/test_cancel.py::test_a_settlement_waits_for_a_cancel_and_is_asked_to_decide_anew",
    ),
    "settle leaves the family of a canceled job alone": mutant(
        f"{STORES}/settling.py",
        "            cancel_descendants(alias, canceled, new_id=new_id, now=now)\n",
        "            pass\n",
        caught_by="tests/races/test_family.py"
        "::test_a_child_that_slips_past_a_cancel_is_canceled_when_its_parent_settles",
    ),
    "cancel reads a family once": mutant(
        f"{STORES}/operating.py",
        "    while family := _descendants(alias, seen):\n",
        "    for family in [_descendants(alias, seen)]:\n",
        caught_by="tests/races/test_family.py"
        "::test_a_grandchild_that_commits_while_the_cancel_waits_for_its_parent_is_canceled",
        database="postgres",
    ),
    "a child of a canceled job is born pending": mutant(
        f"{STORES}/inserting.py",
        "if state == State.CANCELED or asked_at is not None}",
        "if False}",
        caught_by="tests/races/test_family.py::test_what_a_canceled_action_enqueues_is_born_canceled",
    ),
    "a worker that lost its job enqueues children": mutant(
        f"{STORES}/inserting.py",
        "if job.parent_fence is not None and (job.parent_id, job.parent_fence) not in held:",
        "if False:",
        caught_by="tests/races/test_family.py::test_an_action_whose_job_was_taken_away_enqueues_nothing",
    ),
    "a deadlock ends an enqueue": mutant(
        f"{STORES}/connection.py",
        "        if not is_ours or not is_conflict(error):\n            raise\n",
        "        raise\n",
        caught_by="tests/races/test_keys.py::test_many_keys_in_opposite_orders_are_all_enqueued_once",
        database="postgres",
    ),
    "a caught deadlock lets the second half of a mutation commit": mutant(
        f"{STORES}/connection.py",
        "                self._connection.needs_rollback, self._connection.rollback_exc = True, error\n",
        "                pass\n",
        caught_by="tests/races/test_deadlock.py::test_a_deadlock_runs_the_whole_mutation_once_more_under_its_claim",
        database="mariadb",
    ),
    "prune deletes a job above a live one": mutant(
        f"{STORES}/pruning.py",
        "has_live_child=job.id in above_live,",
        "has_live_child=False,",
        caught_by="tests/surface/test_old_rows.py::test_a_job_above_a_live_one_stays",
    ),
    "prune leaves a hole in a family": mutant(
        f"{STORES}/pruning.py",
        "parent_is_there=job.parent_id in parents",
        "parent_is_there=False and job.parent_id in parents",
        caught_by="tests/surface/test_old_rows.py::test_a_cancel_finds_its_way_through_finished_jobs",
    ),
    "prune believes what it saw before it had the lock": mutant(
        f"{STORES}/pruning.py",
        "ids = [job.id for job in _free(alias, _locked(alias, jobs), cut, ())]",
        "ids = [job.id for job in _locked(alias, jobs)]",
        caught_by="tests/races/test_prune.py::test_a_prune_that_saw_a_job_before_it_was_requeued_leaves_it_alone",
    ),
    "prune locks a row before the entry of its key": mutant(
        f"{STORES}/pruning.py",
        "    if features.supports_update_conflicts_with_target:\n",
        "    if features.has_select_for_update:\n",
        caught_by="tests/races/test_prune.py::test_a_job_that_is_pruned_between_two_looks_of_an_enqueue_is_no_error",
        database="mariadb",
    ),
    "an enqueue fails whose key is pruned this instant": mutant(
        f"{STORES}/inserting.py",
        "_TRIES = 3  #",
        "_TRIES = 1  #",
        caught_by="tests/races/test_prune.py::test_a_job_that_is_pruned_between_two_looks_of_an_enqueue_is_no_error",
        database="postgres",
    ),
    "prune deletes the arguments in one transaction and the job in another": mutant(
        f"{STORES}/pruning.py",
        "    with transaction.atomic(using=alias):\n        # Judged once more",
        "    if True:\n        # Judged once more",
        caught_by=f"{KILLED}[prune-after]",
    ),
    "a scheduler does not look after it has connected anew": mutant(
        f"{WAKING}/listening.py",
        "        self._call({LOOK, CANCEL})\n",
        "",
        caught_by="tests/waking/test_listening.py"
        "::test_after_each_connect_it_looks_once_since_nobody_told_it_meanwhile",
    ),
    "a word is answered once, although its speaker kept silent afterwards": mutant(
        f"{WAKING}/listening.py",
        "            owed = kinds\n",
        "            owed = set()\n",
        caught_by="tests/waking/test_listening.py"
        "::test_what_is_stored_in_the_silence_after_a_word_is_seen_by_the_second_look",
    ),
    "a wake-up is sent inside the transaction": mutant(
        f"{STORES}/telling.py",
        "            _after_commit(connection, self._teller.something_is_due)\n\n    def canceled",
        "            self._teller.something_is_due()\n\n    def canceled",
        caught_by="tests/waking/test_telling.py::test_an_enqueue_is_told_after_the_commit_and_a_rollback_is_not",
    ),
    "a hook that is called inside a transaction sends its wake-up with it": mutant(
        f"{STORES}/channel_notify.py",
        "        if connection.in_atomic_block or not connection.get_autocommit():\n            return\n",
        "",
        caught_by="tests/waking/test_notify.py::test_nothing_is_sent_inside_a_transaction",
        database="postgres",
    ),
    "a line that swallows every word is relied on": mutant(
        f"{WAKING}/listening.py",
        "        ear.say(spelled(TEST))\n",
        '        self._pass(f"Wake-up: {ear.name}.")\n        return\n        ear.say(spelled(TEST))\n',
        caught_by="tests/waking/test_listening.py::test_what_swallows_every_word_is_found_out_and_said_in_one_sentence",
    ),
    "one refused end takes its batch along": mutant(
        f"{DRIVER}/outbox.py",
        "        elif len(batch) > 1:\n",
        "        elif len(batch) > 1:\n"
        "            self._write([one.bare(error) for one in batch])\n"
        "        elif False:\n",
        caught_by="tests/driver/test_outbox.py::test_a_row_that_the_database_refuses_stands_alone_in_the_end",
    ),
    "a suspect runs with others waiting behind it": mutant(
        f"{DRIVER}/claiming.py",
        "leave = self._seating.unstarted() if suspects else []",
        "leave: list[Held] = []",
        caught_by="tests/driver/test_look_ahead.py::test_what_waits_already_is_given_back_before_a_suspect_begins",
    ),
    "claims wait behind a long job": mutant(
        f"{DRIVER}/driver.py",
        "        self._claiming.give_back_overdue()\n",
        "",
        caught_by="tests/driver/test_look_ahead.py::test_what_waits_behind_a_long_job_is_given_back",
    ),
    "a queue's kinds of jobs are not learned": mutant(
        f"{DRIVER}/claiming.py",
        "                self._mix.saw(queue, kind, now)\n",
        "                pass\n",
        caught_by="tests/driver/test_async_seats.py"
        "::test_a_flood_of_one_kind_leaves_the_seats_of_the_other_to_other_queues",
    ),
    "a task outlives the async job that made it": mutant(
        f"{DRIVER}/native.py",
        "            task.cancel()\n\n\ndef make_task",
        "            pass\n\n\ndef make_task",
        caught_by="tests/driver/test_async_seats.py::test_what_a_body_leaves_on_the_loop_ends_with_it",
    ),
    "a claim hides what is due next": mutant(
        "django_helisched/driver/claiming.py",
        "        next_due_at = self._jobs.next_due_at(self._config.queues)\n        return Claimed(started",
        "        return Claimed(started",
        caught_by="tests/driver/test_run.py::test_what_is_due_next_is_known_while_what_was_due_runs",
    ),
    "a wake-up removes whatever file refuses it": mutant(
        f"{STORES}/channel_datagram.py",
        "            if stat.S_ISSOCK(path.lstat().st_mode):\n",
        "            if True:\n",
        caught_by="tests/waking/test_file.py::test_what_is_no_socket_of_ours_is_left_alone",
        database="sqlite",
    ),
    "an exception of a guard lands after the body has ended": mutant(
        "django_helisched/driver/deadline.py",
        '        while not self._is_first(self._raised, "body"):\n',
        "        while False:\n",
        caught_by="tests/driver/test_deadline.py"
        "::test_an_exception_that_is_on_its_way_when_the_body_ends_lands_inside_or_nowhere",
    ),
    "an abandoned mutation commits": mutant(
        "django_helisched/driver/mutation.py",
        "if self._held.is_abandoned or ran.ending",
        "if ran.ending",
        caught_by="tests/driver/test_database.py"
        "::test_an_abandoned_mutation_commits_nothing_though_its_connection_was_not_cut",
    ),
    "a process whose supervisor is gone works on": mutant(
        f"{DRIVER}/orders.py",
        "        if self._finish():\n            log_event",
        "        if self._first.locked():\n            log_event",
        caught_by="tests/crash/test_supervisor.py"
        "::test_when_the_supervisor_is_killed_its_processes_finish_what_they_run_and_end",
    ),
    "a process under a supervisor counts the signals that it gets": mutant(
        f"{DRIVER}/orders.py",
        "        is_first = self._first.acquire(blocking=False)\n",
        "        is_first = True\n",
        caught_by="tests/crash/test_supervisor.py"
        "::test_sigterm_to_all_of_a_group_lets_jobs_finish_and_everybody_exit_zero",
    ),
    "a lost database makes a process look dead": mutant(
        f"{DRIVER}/vitals.py",
        "            is_live=not wedged,\n",
        "            is_live=not (wedged or lost),\n",
        caught_by="tests/driver/test_vitals.py::test_a_lost_database_is_no_reason_to_end_the_process",
    ),
    "a loop that hangs is called alive": mutant(
        f"{DRIVER}/vitals.py",
        "            if silence > self._longest:\n",
        "            if silence > 1000 * self._longest:\n",
        caught_by="tests/driver/test_vitals.py::test_a_loop_that_does_not_move_is_wedged_and_recovers_when_it_moves",
    ),
    "a wedged process feeds the watchdog": mutant(
        f"{DRIVER}/notify.py",
        "if self.watchdog is not None and status.is_live:",
        "if self.watchdog is not None:",
        caught_by="tests/driver/test_showing.py::test_a_wedged_process_does_not_feed_the_watchdog",
    ),
    "health believes in schedulers that are stopping": mutant(
        "django_helisched/inspection/health.py",
        'if worker.state != "draining"',
        "if worker.id",
        caught_by="tests/surface/test_health.py::test_schedulers_that_stopped_or_are_stopping_are_none",
    ),
    "a job that is to run again keeps the slot of its limit": mutant(
        f"{STORES}/ending.py",
        'held, wait = ("", []) if terminal else',
        'held, wait = ("", []) if terminal or outcome else',
        caught_by=f"{JOB_STORE}::test_a_job_that_runs_again_waits_again[orm]",
    ),
    "a swept job keeps the slot of its limit": mutant(
        f"{STORES}/ending.py",
        '        changes["hold"], changes["held_at"] = hold.value, now if hold else None\n',
        "",
        caught_by=f"{JOB_STORE}::test_a_swept_job_gives_its_slot_back[orm]",
    ),
    "a limit lets out one too many": mutant(
        f"{STORES}/limiting.py",
        "min(settled[key].capacity - out, share)",
        "min(settled[key].capacity + 1 - out, share)",
        caught_by=f"{JOB_STORE}::test_no_more_are_out_than_the_capacity[orm]",
    ),
    "who is out is read before the lock of the limit": mutant(
        f"{STORES}/limiting.py",
        "min(settled[key].capacity - out, share)",
        "min(room[key], share)",
        caught_by="tests/races/test_limits.py::test_one_that_has_read_before_another_admits_reads_again_under_the_lock",
    ),
    "whoever holds a limit waits for jobs that others hold": mutant(
        f"{STORES}/limiting.py",
        'return f"FOR {no_key}UPDATE {of}SKIP LOCKED"',
        'return f"FOR {no_key}UPDATE {of}"',
        caught_by="tests/races/test_limits.py::test_a_job_that_is_being_canceled_holds_up_nobody",
        database="postgres",
    ),
    "a paused queue takes the slots of its limit": mutant(
        f"{STORES}/limiting.py",
        "if not line.is_paused and queues.admits(line.queue):",
        "if queues.admits(line.queue):",
        caught_by=f"{JOB_STORE}::test_paused_and_unserved_queues_are_passed_over[orm]",
    ),
    "a batch is read before its lock": mutant(
        f"{STORES}/batching.py",
        "        row = _locked(alias, batch_id)\n        if row is not None and row.closed_at",
        "        row = get(alias, batch_id)\n        if row is not None and row.completed_at is None and row.closed_at",
        caught_by="tests/races/test_batches.py::test_of_two_that_end_the_last_two_jobs_at_once_the_second_calls_back",
        database="postgres",
    ),
    "a sweep completes no batch": mutant(
        f"{STORES}/ending.py",
        "        note_end(job.batch_id)\n",
        "",
        caught_by=f"{JOB_STORE}::test_cancel_expiry_sweep_and_release_end_jobs_too[orm]",
    ),
    "a closed batch takes jobs from anybody": mutant(
        f"{STORES}/batch_membership.py",
        "    if not strangers:\n",
        "    if strangers is not None:\n",
        caught_by="tests/races/test_batches.py::test_whoever_adds_while_it_is_being_closed_is_refused",
    ),
}
