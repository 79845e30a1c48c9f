"""One session: every round asks every peer the same case one after the other, and all answers go to one file."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.stage import PeerFailed, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.cases import Case, Sizes


@dataclass
class Session:
    """The order of the runs, and what they gave."""

    cases: Sequence[Case]
    peers: Sequence[str]
    databases: Sequence[str]
    rounds: int
    sizes: Sizes
    command: str
    what: str
    quick: bool
    file: Path
    records: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def run(self) -> int:
        """Run everything and return how many runs failed; what is known so far is written after each."""
        stages = {(peer, database): Stage(peer, database) for peer, database in self._pairs()}
        try:
            for stage in stages.values():
                self._ask_facts(stage)
            for number, database, case, peer in self._order():
                self._one(number, case, stages[peer, database])
        finally:
            for stage in stages.values():
                stage.close()
        return sum("error" in record for record in self.records)

    def _pairs(self) -> list[tuple[str, str]]:
        asked = {(peer, database) for _, database, _, peer in self._order()}
        return sorted(asked, key=lambda pair: (self.peers.index(pair[0]), pair[1]))

    def _order(self) -> Iterator[tuple[int, str, Case, str]]:
        from benchmarks.peers import peer_named

        for number in range(self.rounds):
            for database in self.databases:
                for case in self.cases:
                    able = [peer for peer in self.peers if case.applies(peer_named(peer), database)]
                    # Nobody is always the first on a warm machine.
                    turn = number % len(able) if able else 0
                    yield from ((number, database, case, peer) for peer in able[turn:] + able[:turn])

    def _ask_facts(self, stage: Stage) -> None:
        # Who fails already here fails in every run, where it is recorded.
        with suppress(PeerFailed), stage.run() as run:
            self.facts[f"{stage.peer.name} {stage.database}"] = run.ask("facts")

    def _one(self, number: int, case: Case, stage: Stage) -> None:
        record: dict[str, Any] = {
            "round": number,
            "database": stage.database,
            "case": case.name,
            "peer": stage.peer.name,
        }
        begun = time.monotonic()
        try:
            with stage.run(seats=case.seats) as run:
                record["figures"] = case.measure(run, self.sizes)
        except Exception as error:  # one run that fails must not lose the others of an hour
            record["error"] = f"{type(error).__name__}: {error}\n{stage.tail()}"
        record["took"] = round(time.monotonic() - begun, 2)
        record["load"] = os.getloadavg()[0]
        self.records.append(record)
        self._write()
        print(_line(record, case), flush=True)

    def _write(self) -> None:
        machine = {"cores": os.cpu_count(), "processor": _processor(), "kernel": platform.release()}
        told = {
            "what": self.what,
            "quick": self.quick,
            "command": self.command,
            "machine": machine,
            "facts": self.facts,
            "records": self.records,
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(told, indent=1) + "\n")


def _line(record: dict[str, Any], case: Case) -> str:
    place = f"{record['round'] + 1} {record['database']:8} {case.name:19} {record['peer']:26}"
    if "error" in record:
        return f"{place} FAILED: {record['error'].splitlines()[0]}"
    return f"{place} " + ", ".join(f"{name} {value:.4g}" for name, value in record["figures"].items())


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123  # a file of the kernel
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return platform.processor()
