"""Bodies of test jobs. Each leaves a mark: in ``seen``, for this process, or in a row."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from contextvars import ContextVar, copy_context
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, transaction
from django.utils import timezone, translation

from django_helisched import HelischedError, Limit, NonRetryable, RetryLater, action, current_job, mutation
from tests.app.models import Ledger

logger = logging.getLogger(__name__)
seen: list[Any] = []
# A body that waits does so for the event of its name; the test sets it.
gates: dict[str, threading.Event] = {}


class Door:
    """What a gate is to threads, for tasks: any thread may open it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._is_open = False

    async def wait(self) -> None:
        event = asyncio.Event()
        with self._lock:
            self._waiting.append((asyncio.get_running_loop(), event))
            if self._is_open:
                event.set()
        await event.wait()

    def set(self) -> None:
        with self._lock:
            self._is_open = True
            for loop, event in self._waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)


doors: dict[str, Door] = {}
left_behind: ContextVar[str] = ContextVar("left_behind", default="")


class Broken(Exception):
    """What a body raises that is told to fail."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@mutation
def note(mark: Any) -> Any:
    seen.append(mark)
    return mark


@action
def tell(mark: Any) -> Any:
    seen.append(mark)
    return mark


@action(queue="mail", priority=7, max_failures=9)
def send(mark: Any) -> None:
    seen.append(mark)


@action(at_most_once=True)
def once(mark: Any) -> None:
    seen.append(mark)
    raise Broken(mark)


@action
def fail_until(attempt: int) -> int:
    """Fail in every attempt before this one."""
    if current_job().attempt < attempt:
        raise Broken(f"attempt {current_job().attempt}")
    return current_job().attempt


@action
def raise_this(name: str) -> None:
    """Raise an exception that ends a process, a loop or a generator, or cannot be shown."""
    errors: dict[str, BaseException] = {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "CancelledError": asyncio.CancelledError(),
        "Unprintable": Unprintable(),
        "NUL": ValueError("a \x00 and a \udcff"),
        "NonRetryable": NonRetryable("it is over"),
        "RetryLater": RetryLater(40),
        "snooze": RetryLater(40, count=False),
    }
    raise errors[name]


@action
async def raise_async(name: str) -> None:
    raise_this.func(name)


@action
def return_this(name: str) -> Any:
    """Return a value that JSON cannot hold, or not quite."""
    loop: list[Any] = []
    loop.append(loop)
    values: dict[str, Any] = {
        "object": object(),
        "set": {1, 2},
        "self-reference": loop,
        "huge integer": 10**5000,
        "long": "x" * 2_000_000,
        "NUL": {"a\x00": ["b\udcff"]},
        "tuple": (1, "two"),
    }
    return values[name]


@action
def return_coroutine() -> Any:
    return asyncio.sleep(0)


@mutation
def enqueue_note(mark: Any) -> None:
    seen.append(("parent", mark))
    note.enqueue(mark)


@mutation
def enqueue_itself() -> None:
    enqueue_itself.enqueue()


@action
async def enqueue_everywhere(mark: str) -> None:
    """Enqueue from awaited code, from a task and from another thread."""
    await note.aenqueue(f"{mark} awaited")
    await asyncio.create_task(note.aenqueue(f"{mark} task"))
    await asyncio.to_thread(note.enqueue, f"{mark} thread")


@action
def enqueue_behind(gate: str, mark: str) -> None:
    """Enqueue once the gate is open."""
    seen.append(f"{mark} waits")
    gates[gate].wait()
    note.enqueue(mark)


@action
def wait_at(gate: str) -> None:
    seen.append(f"at {gate}")
    gates[gate].wait()


@action
def sit_at(gate: str) -> str:
    """Wait inside one call that no exception reaches; then say what is allowed still."""
    job = current_job()
    seen.append(f"sits at {gate}")
    logger.warning("sits")
    gates[gate].wait()
    for attempt in (lambda: job.progress(1), lambda: note.enqueue("late")):
        try:
            attempt()
            seen.append("allowed")
        except HelischedError as error:
            seen.append(type(error).__name__)
    return "late"


@action(at_most_once=True)
def sit_once(gate: str) -> None:
    gates[gate].wait()


def spin_until_open(gate: str) -> None:
    # A function of its own: on Python 3.13 the jump of a loop is outside of the try around it.
    while not gates[gate].is_set():
        pass


@action
def swallow_all(gate: str) -> str:
    """Let no exception end it before the gate is open."""
    seen.append("swallows")
    while not gates[gate].is_set():
        try:
            spin_until_open(gate)
        except BaseException:  # noqa: S112  # which is what makes it a bad body
            continue
    return "late"


@mutation
def write_and_sit(gate: str, marker: str) -> None:
    """Write a row; at the first attempt wait inside one call that no exception reaches; write again."""
    write_row(f"{marker} first")
    if current_job().attempt == 1:
        seen.append(f"sits at {gate}")
        gates[gate].wait()
        try:
            write_row(f"{marker} late")
        except DatabaseError as error:
            seen.append(type(error).__name__)
            raise
    write_row(f"{marker} last")


@mutation
def write_and_wait(gate: str, marker: str) -> None:
    write_row(marker)
    seen.append(f"at {gate}")
    gates[gate].wait()


@action(interruptible=True)
def spin_interruptible() -> None:
    seen.append("spins")
    try:
        while True:
            pass
    finally:
        seen.append("cleaned up")


@action(interruptible=True)
def swallow_interruption() -> str:
    seen.append("spins")
    try:
        while True:
            pass
    except BaseException:
        return "done all the same"


@action(interruptible=True)
def fail_of_interruption() -> None:
    seen.append("spins")
    try:
        while True:
            pass
    finally:
        raise Broken


@action(interruptible=True)
def sit_interruptible(gate: str) -> None:
    seen.append(f"sits at {gate}")
    gates[gate].wait()


@mutation(interruptible=True)
def write_and_spin(marker: str) -> None:
    write_row(marker)
    note.enqueue(marker)
    seen.append("spins")
    while True:
        pass


@action
async def wait_async(mark: str) -> None:
    """Wait for ever, and mark the cancellation."""
    seen.append(mark)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen.append(f"{mark} canceled")
        raise


@action
async def wait_at_door(door: str) -> None:
    seen.append(f"at {door}")
    await doors[door].wait()
    seen.append(f"through {door}")


@action(at_most_once=True)
async def once_async(mark: Any) -> None:
    seen.append(mark)


@action
async def swallow_cancellations(count: int) -> None:
    """Wait for ever, and swallow so many cancellations."""
    for _ in range(count):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("swallowed")
    await asyncio.Event().wait()


@action
async def swallow_all_async(door: str) -> None:
    """Swallow every cancellation until the door opens."""
    seen.append(f"at {door}")
    while "through the door" not in seen:
        try:
            await doors[door].wait()
            seen.append("through the door")
        except asyncio.CancelledError:
            seen.append("swallowed")


@action
async def exit_in_a_task() -> None:
    """Let a task of its own raise what ends a loop."""

    async def leave() -> None:
        raise SystemExit(5)

    await asyncio.create_task(leave())


@action
async def leave_a_task() -> None:
    """Leave a task behind that waits for ever."""

    async def stay() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("the task is canceled")
            raise

    bodies_own = asyncio.create_task(stay())
    await asyncio.sleep(0)
    seen.append(bodies_own.done())


@action
async def block_the_loop(gate: str) -> None:
    seen.append("blocks")
    gates[gate].wait()


@action
async def name_thread(mark: Any) -> None:
    """Name the thread of the body, and that of its thread-sensitive code."""

    def name() -> str:
        return threading.current_thread().name

    seen.append((name(), await sync_to_async(name)()))


@action
async def leave_loop_state() -> None:
    """Do as leave_thread_state, in a task."""
    leave_thread_state.func()


@action
async def leave_transaction_open_across_awaits(marker: str) -> None:
    await sync_to_async(transaction.atomic().__enter__)()
    await sync_to_async(write_row)(marker)


@action
async def break_connection() -> None:
    def use_a_broken_one() -> None:
        connection.ensure_connection()
        connection.connection.close()
        Ledger.objects.count()

    await sync_to_async(use_a_broken_one)()


@action
async def write_alone(marker: str) -> None:
    await Ledger.objects.acreate(marker=marker)
    seen.append(marker)


@action
def spin() -> None:
    """Work for ever, in steps that an exception can divide."""
    seen.append("spins")
    while True:
        seen.append(seen.pop())


@action
async def spin_async() -> None:
    await asyncio.Event().wait()


@action
def watch_for_cancel() -> None:
    """Work until asked to stop."""
    seen.append("watches")
    while True:
        current_job().raise_if_canceled()


@action
def report_progress(done: int) -> None:
    current_job().progress(done, 100, "a NUL \x00")
    seen.append("reported")
    gates["progress"].wait()


@action
def count_to(done: int) -> None:
    """Report each step at once, and end or fail without a pause."""
    for step in range(1, done + 1):
        current_job().progress(step, done)
    if done == 13:
        raise Broken(done)


@mutation
def count_and_write(marker: str) -> None:
    write_row(marker)
    current_job().progress(1, 2, marker)
    logger.warning("wrote %s", marker)
    if marker == "fail":
        raise Broken(marker)


@action
def report_steps(gate: str, steps: int) -> None:
    """Report one step each time the gate is opened."""
    for step in range(1, steps + 1):
        current_job().progress(step, steps)
        seen.append(("reported", step))
        gates[gate].wait()
        gates[gate].clear()


@action
def keep_context() -> None:
    seen.append(current_job())


@action
def show_context() -> None:
    job = current_job()
    seen.append((job.fire_at, job.missed, job.first_missed_at, job.attempt))


@action
def leave_thread_state() -> None:
    """Leave on a language, a zone and a variable, as a careless library does."""
    seen.append((left_behind.get(), translation.get_language(), timezone.get_current_timezone_name()))
    left_behind.set("mud")
    translation.activate("de")
    timezone.activate("Asia/Kathmandu")


@action
def log_lines(*lines: str) -> None:
    for line in lines:
        logger.info("%s", line)


@action
def log_behind(gate: str, mark: str) -> None:
    """Log before and after the gate is open."""
    logger.info("%s before", mark)
    seen.append(f"{mark} waits")
    gates[gate].wait()
    logger.info("%s after", mark)


@action
async def log_everywhere(mark: str) -> None:
    """Log from awaited code, from a task and from other threads."""

    async def log(where: str) -> None:
        logger.info("%s %s", mark, where)

    await log("awaited")
    await asyncio.create_task(log("task"))
    await asyncio.to_thread(logger.info, "%s thread", mark)
    await sync_to_async(logger.info)("%s sync", mark)
    stranger = threading.Thread(target=logger.info, args=("%s stranger", mark))
    stranger.start()
    stranger.join()


@action
def log_at_all_levels() -> None:
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logger.log(level, "%s", logging.getLevelName(level))


@action
def log_badly() -> None:
    """Log what cannot be formatted, and what a database could not store."""
    logger.info("%s", Unprintable())
    logger.info("a NUL \x00, a \udcff, postgres://ada:secret@db/shop")
    try:
        raise_this("NonRetryable")
    except NonRetryable:
        logger.exception("caught")


@action
def log_and_fail() -> None:
    logger.warning("attempt %d", current_job().attempt)
    raise Broken


@action
def leave_a_logger_behind() -> None:
    """Leave a function that logs in this job's context."""
    context = copy_context()
    seen.append(lambda: context.run(logger.info, "too late"))


def write_row(marker: str) -> None:
    Ledger.objects.create(marker=marker)


@mutation
def write(marker: str) -> str:
    """Write one row."""
    write_row(marker)
    return marker


@mutation
def write_until(attempt: int, marker: str) -> None:
    """Write one row, and fail in every attempt before this one."""
    write_row(marker)
    if current_job().attempt < attempt:
        raise Broken(marker)


@action
def write_and_fail(marker: str) -> None:
    write_row(marker)
    raise Broken(marker)


@action
async def write_async(marker: str) -> int:
    await sync_to_async(write_row)(marker)
    return await Ledger.objects.acount()


@action
def leave_transaction_open(marker: str) -> None:
    """Enter a transaction by hand and forget it."""
    transaction.atomic().__enter__()
    write_row(marker)


@mutation
def leave_savepoint_open(marker: str) -> None:
    transaction.atomic().__enter__()
    write_row(marker)


@action
def run_without_autocommit(marker: str) -> None:
    transaction.set_autocommit(autocommit=False)
    write_row(marker)


@mutation
def told(job_id: str, context: Any, result: Any) -> None:
    """Mark how another job ended."""
    seen.append((context, result["kind"]))


@action
def query_for_ever() -> None:
    while True:
        Ledger.objects.count()


@mutation
def write_for_ever() -> None:
    while True:
        write_row("never")


@action
def stamp(path: str) -> None:
    """Tell the socket at ``path`` what time it is."""
    _tell_the_time(path)


@action
async def stamp_when_canceled(path: str) -> None:
    """Tell the socket at ``path`` when this begins, and when it is told to end."""
    _tell_the_time(path)
    try:
        await asyncio.Event().wait()
    finally:
        _tell_the_time(path)


def _tell_the_time(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(f"{time.monotonic()} {time.time()}".encode(), path)


@action(concurrency=Limit(2))
def narrow(mark: Any) -> None:
    """One of two at a time; what is beside it is noted."""
    seen.append(mark)


@action(concurrency=Limit(2))
def narrow_gate(gate: str) -> None:
    seen.append(f"in {gate}")
    gates[gate].wait()


@action(concurrency=Limit(1, key="order:{order_id}"))
def ship(order_id: int, note: str = "", *rest: Any) -> None:
    seen.append((order_id, note))


@mutation(concurrency=Limit(3, key="space"))
def by_space(mark: Any) -> None:
    seen.append(mark)


@mutation(concurrency=Limit(1, key="{job_id}/{kind}"))
def limited_callback(job_id: str, context: Any, result: Any, kind: str = "end") -> None:
    seen.append((job_id, kind))


@action(concurrency=Limit(1, key="again"))
def narrow_again(attempt: int) -> None:
    """Fail in every attempt before this one."""
    seen.append(f"attempt {current_job().attempt}")
    if current_job().attempt < attempt:
        raise Broken("once more")


@mutation
def batch_done(batch_id: str, context: Any, counts: dict[str, int]) -> None:
    seen.append((batch_id, context, counts))


@mutation
def grow(more: int) -> None:
    """Add one job to its own batch, as long as there are more to come."""
    seen.append(more)
    if more:
        grow.using(batch=current_job().batch).enqueue(more - 1)
