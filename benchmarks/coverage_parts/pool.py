"""Runs attempts in processes of their own, each for a limited time.

A worker reads paths from its input, a line each, and answers with lines of JSON: what step it
begins, and at last the outcome. One that hangs or dies is replaced; its launch counts as such.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from .attempt import Attempt, Outcome
from .tpu import use_environment

STARTING_SECONDS = 120
CLOCK_FACTOR = 10


def serve(options):
    """What a worker does: never returns before its input ends."""
    from .pretence import pretended_gpu

    use_environment()
    # What packages print must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(**message):
        answers.write(json.dumps(message) + "\n")

    def announce(step, outcome):
        say(step=step, so_far=outcome.as_dict())

    attempt = Attempt(announce, **options)
    with pretended_gpu():
        say(ready=True)
        for line in sys.stdin:
            say(outcome=attempt.run(line.strip()).as_dict())


class Pool:
    """Workers that attempt launches.

    Args:
      command: starts a worker.
      jobs: how many.
      seconds: how much processor time a launch may take.
    """

    def __init__(self, command, jobs, seconds):
        self._command = command
        self._jobs = jobs
        self._seconds = seconds
        self._done = queue.Queue()

    def run(self, paths):
        """Gives (path, outcome) of each as it is done."""
        waiting = queue.Queue()
        for path in paths:
            waiting.put(path)
        threads = [
            threading.Thread(target=self._serve, args=(waiting,), daemon=True)
            for _ in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        for _ in paths:
            yield self._done.get()

    def _serve(self, waiting):
        worker = None
        while True:
            try:
                path = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None:
                worker = _Worker(self._command)
            outcome = worker.attempt(path, self._seconds)
            if not worker.alive:
                worker = None
            self._done.put((path, outcome))
        if worker is not None:
            worker.end()


class _Worker:
    def __init__(self, command):
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._answers = queue.Queue()
        self._errors = deque(maxlen=200)
        threading.Thread(target=self._read, daemon=True).start()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.alive = True
        self._ready = False

    def _read(self):
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def _listen(self):
        for line in self._process.stderr:
            self._errors.append(line)

    def attempt(self, path, seconds):
        if not self._ready and not self._starts():
            self.end()
            return Outcome(result="error", reason="a worker does not start").as_dict()
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        limit = _Limit(self._process.pid, seconds)
        step, so_far = "start", Outcome().as_dict()
        while True:
            try:
                answer = self._answer(limit)
            except TimeoutError:
                self.end()
                return _unfinished(so_far, step, f"takes more than {seconds:g} s", "timeout")
            if answer is None:
                self._process.wait()
                why = f"ends the process with {self._process.returncode}{self._last_words()}"
                self.end()
                return _unfinished(so_far, step, why, "error")
            if "outcome" in answer:
                return answer["outcome"]
            step, so_far = answer["step"], answer.get("so_far", so_far)

    def _starts(self):
        try:
            self._ready = self._answer(_Limit(self._process.pid, STARTING_SECONDS)) is not None
        except TimeoutError:
            return False
        return self._ready

    def _answer(self, limit):
        while True:
            try:
                return self._answers.get(timeout=0.5)
            except queue.Empty:
                limit.check()

    def _last_words(self):
        """What compilers that end the process write before they do."""
        self._listener.join()
        failed = [line for line in self._errors if "Check failed" in line]
        return f": {failed[-1].strip()}" if failed else ""

    def end(self):
        self.alive = False
        self._process.kill()
        self._process.wait()


class _Limit:
    """Processor time that a process may take from now on, and much more time by the clock.

    What others do on the machine then decides nothing.
    """

    def __init__(self, pid, seconds):
        self._path = Path(f"/proc/{pid}/stat")
        self._seconds = seconds
        self._clock_end = time.monotonic() + seconds * CLOCK_FACTOR
        self._before = self._spent()

    def check(self):
        spent = self._spent() - self._before
        if spent > self._seconds or time.monotonic() > self._clock_end:
            raise TimeoutError

    def _spent(self):
        try:
            fields = self._path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _unfinished(so_far, step, why, result):
    """The outcome of a launch whose worker was lost; what was proved before stays so."""
    if step == "compile":
        return {**so_far, "tpu": "no", "tpu_reason": f"to compile it {why}"}
    return {**so_far, "result": result, "reason": f"the step `{step}` {why}"}
