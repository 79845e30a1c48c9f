"""Listen for the words of other processes, from a thread of its own."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django_helisched.driver import connections
from django_helisched.driver.events import DriverEvent, What
from django_helisched.stores.clock import elapsed
from django_helisched.stores.words import CANCEL, LOOK, SILENCE, TEST, Word, spelled, this_process, understood

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django_helisched.driver.events import Announcer
    from django_helisched.driver.pace import Pace
    from django_helisched.driver.waking.ear import Ear

logger = logging.getLogger("django_helisched.driver")

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0  # seconds between two tries to listen; meanwhile there is polling
DEAF_DELAY = 300.0  # seconds: what stands in the way is the configuration, and a person mends it
TEST_SECONDS = 5.0  # a word of one's own comes within a millisecond; a busy machine may take longer
TURN = 5.0  # seconds of one wait, after which the ear looks after itself

# Longer than the silence of whoever spoke, so that it is over when the second look begins.
ECHO = SILENCE + 0.002


class Deaf(Exception):
    """What was said did not arrive."""


class Listening:
    """Hears words and answers them: ``wake`` for work, ``hurry`` for cancels.

    Work is answered by ``claim`` where the ear lends its line: then nobody else need wake up first, neither here nor on
    the server. Where that returns False, it is ``wake``.

    A word is answered at once, and once more when the silence of its speaker is
    over: what was stored in that silence is seen by the second look. All that is
    said in between is answered together, so that no flood makes more than one
    look in ECHO seconds. The ``pace`` is told whether words can be relied on.
    Without an ear nothing is heard.
    """

    def __init__(
        self,
        ear: Ear | None,
        pace: Pace,
        announce: Announcer,
        *,
        wake: Callable[[], None],
        hurry: Callable[[], None],
        claim: Callable[[], bool] | None = None,
        test_seconds: float = TEST_SECONDS,
    ) -> None:
        self._ear = ear
        self._pace = pace
        self._announce = announce
        self._answers = {LOOK: wake, CANCEL: hurry}
        self._claim = claim
        self._test_seconds = test_seconds
        self._test_ends_at: float | None = None
        self._stopping = threading.Event()
        self._delay = 0.0
        self._told = ""

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Listen inside the block."""
        ear = self._ear
        if ear is None:
            self._tell(What.WAKEUP_READY, "Wake-up: polling.")
            yield
            return
        thread = threading.Thread(target=self._run, args=(ear,), name="helisched-listener", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            ear.interrupt()
            thread.join(timeout=TURN)

    def _run(self, ear: Ear) -> None:
        try:
            while not self._stopping.is_set():
                self._stopping.wait(self._try(ear))
        finally:
            connections.drop_all()

    def _try(self, ear: Ear) -> float:
        """Listen for as long as it goes, and return the seconds until the next try."""
        try:
            self._listen(ear)
        except Deaf as error:
            self._tell(What.WAKEUP_LOST, str(error))
            return DEAF_DELAY
        except Exception as error:
            logger.debug("Nothing is heard any more.", exc_info=True)
            self._tell(What.WAKEUP_LOST, f"{ear.name} is not heard ({_first_line(error)}). Polling until it is.")
            self._delay = min(LONGEST_DELAY, 2 * self._delay or FIRST_DELAY)
            return self._delay
        finally:
            ear.close()
            self._pace.is_told = False
            self._answers[LOOK]()  # so that nobody waits for longer than polling allows
        return 0.0

    def _listen(self, ear: Ear) -> None:
        ear.open()
        # Whatever was said before was said to nobody.
        self._call({LOOK, CANCEL})
        self._begin_test(ear)
        owed: set[str] = set()
        while not self._stopping.is_set():
            kinds = self._hear(ear, 0.0 if owed else TURN)
            self._answer(ear, kinds | owed)
            owed = kinds
            if kinds:
                self._stopping.wait(ECHO)

    def _hear(self, ear: Ear, seconds: float) -> set[str]:
        """Return what others have said; what this process said itself it knows already."""
        testing_for = None if self._test_ends_at is None else self._test_ends_at - elapsed()
        heard = ear.hear(seconds if testing_for is None else max(0.0, min(seconds, testing_for)))
        words = [word for text in heard if (word := understood(text))]
        if testing_for is not None:
            self._judge_test(ear, words)
        return {word.kind for word in words if word.kind != TEST and word.speaker != this_process()}

    def _begin_test(self, ear: Ear) -> None:
        """Say something: a pooler that lends a connection to others between two statements swallows it."""
        if ear.deaf_because:
            self._pass(f"Wake-up: {ear.name}, since {ear.deaf_because}.")
            return
        ear.say(spelled(TEST))
        self._test_ends_at = elapsed() + self._test_seconds

    def _judge_test(self, ear: Ear, words: list[Word]) -> None:
        if any(word.kind == TEST and word.speaker == this_process() for word in words):
            self._pass(f"Wake-up: {ear.name}.")
        elif self._test_ends_at is not None and elapsed() >= self._test_ends_at:
            raise Deaf(
                f"What is said by {ear.name} does not arrive, as behind a pooler in transaction mode. Polling "
                'instead; give HELISCHED["DATABASE"] an address that leads to the server itself, or poll more often.'
            )

    def _pass(self, text: str) -> None:
        self._test_ends_at = None
        self._delay = 0.0
        self._pace.is_told = True
        self._tell(What.WAKEUP_READY, text)

    def _answer(self, ear: Ear, kinds: set[str]) -> None:
        # Only a line by which the test came back leads to one server and nobody else.
        if LOOK in kinds and self._claim is not None and self._pace.is_told and ear.by_its_line(self._claim):
            kinds = kinds - {LOOK}
        self._call(kinds)

    def _call(self, kinds: set[str]) -> None:
        for kind in kinds:
            self._answers[kind]()

    def _tell(self, what: What, text: str) -> None:
        if text != self._told:
            self._told = text
            self._announce(DriverEvent(what=what, text=text))


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
