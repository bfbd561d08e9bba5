"""How long a process may work on one launch."""

import time

from .process_tree import spent_seconds

CLOCK_FACTOR = 10
IDLE_SECONDS = 60.0
IDLE_SHARE = 0.002


class Limit:
    """Processor time that a process may take from now on, and much more time by the clock.

    What others do on the machine then decides nothing. What waits for something that never comes
    takes no processor time, and is found by that.
    """

    def __init__(self, pid, seconds, idle=IDLE_SECONDS):
        self._pid = pid
        self._seconds = seconds
        self._idle = idle
        self._before = self._at_work = spent_seconds(pid)
        self._clock_end = time.monotonic() + seconds * CLOCK_FACTOR
        self._idle_from = time.monotonic()

    def check(self):
        """Raises `TimeoutError`, which says what the process does, once it is over the limit."""
        now, spent = time.monotonic(), spent_seconds(self._pid)
        if spent - self._before > self._seconds or now > self._clock_end:
            raise TimeoutError(f"takes more than {self._seconds:g} s")
        if spent - self._at_work > self._idle * IDLE_SHARE:
            self._at_work, self._idle_from = spent, now
        elif now - self._idle_from > self._idle:
            raise TimeoutError(f"hangs: it does nothing for {self._idle:g} s")
