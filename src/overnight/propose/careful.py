"""A proposer held at arm's length: whatever goes wrong in it is noted, waited out and never ends the night.

A failure is an exception, or an answer that no record takes. After each one it is left alone for longer: 1 s, 2 s, 4 s
and so on up to ten minutes. After many in a row it counts as exhausted, and the night goes on to certify what it has.
"""

from collections.abc import Callable

from overnight.errors import OvernightError
from overnight.ports import Clock, Proposer
from overnight.records.codec import decode, encode
from overnight.records.proposal import Edited, Exhausted, Proposal, View, Wait
from overnight.records.text import sentence

MOST_FAILURES = 20
"""So many failures in a row, and nothing is expected of it any more."""
_LONGEST_SECONDS = 600.0


class Careful:
    """See `ports.Proposer`; asks another one, and answers for it where it fails."""

    def __init__(self, inner: Proposer, clock: Clock, note: Callable[[str], None]) -> None:
        self._inner, self._clock, self._note = inner, clock, note
        self._failures = 0
        self._not_before = 0.0

    def ask(self, view: View) -> Proposal | Edited | Wait | Exhausted:
        """Ask, unless it is being left alone after a failure."""
        left = self._not_before - self._clock.running()
        if left > 0:
            return Wait(until_seconds=left, because="The proposer failed, and is left alone for a while.")
        try:
            answer = self._inner.ask(view)
            if isinstance(answer, Proposal):
                decode(Proposal, encode(answer), where="proposal")
        except OvernightError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - a proposer is somebody else's program, and the night outlives it
            return self._failed(f"{type(error).__name__}: {error}")
        self._failures = 0
        return answer

    def _failed(self, why: str) -> Wait | Exhausted:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            return Exhausted(because=sentence(f"The proposer failed {self._failures} times in a row; last: {why}"))
        seconds = min(2.0 ** (self._failures - 1), _LONGEST_SECONDS)
        self._not_before = self._clock.running() + seconds
        says = sentence(f"The proposer failed, and is asked again in {seconds:.0f} s: {why}")
        self._note(says)
        return Wait(until_seconds=seconds, because=says)
