"""Runs jobs in processes of their own, each for a limited time.

A worker reads jobs from its input, a line each, and answers with lines of JSON: what step it
begins, and at last the outcome. One that hangs or dies is replaced; its job counts as such.
"""

import json
import queue
import subprocess
import threading
from collections import deque
from contextlib import suppress

from .limits import Limit
from .process_tree import end_group

STARTING_SECONDS = 120


def lost_outcome(job, so_far, step, why, result):
    """The outcome of a job whose worker was lost."""
    return {**so_far, "result": result, "reason": f"the step `{step}` {why}"}


class Pool:
    """Workers that do jobs.

    Args:
      command: starts a worker.
      workers: how many.
      seconds: how much processor time a job may take.
      lost: gives the outcome of a job whose worker was lost, as `lost_outcome` does.
    """

    def __init__(self, command, workers, seconds, lost=lost_outcome):
        self._command = command
        self._workers = workers
        self._seconds = seconds
        self._lost = lost
        self._done = queue.Queue()
        self._living = set()

    def run(self, jobs):
        """Gives (job, outcome) of each job as it is done; a job is written to a worker as text.

        Ends the workers when all is done, or when nobody asks for more.
        """
        waiting = queue.Queue()
        for each in jobs:
            waiting.put(each)
        threads = [
            threading.Thread(target=self._serve, args=(waiting,), daemon=True)
            for _ in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                job, outcome = self._done.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield job, outcome
        finally:
            while not waiting.empty():
                with suppress(queue.Empty):
                    waiting.get_nowait()
            for worker in list(self._living):
                worker.end()

    def _serve(self, waiting):
        worker = None
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None:
                worker = _Worker(self._command, self._lost)
                self._living.add(worker)
            try:
                outcome = worker.attempt(job, self._seconds)
            except Exception as error:  # raised where the outcomes are waited for
                worker.end()
                outcome = error
            if not worker.alive:
                self._living.discard(worker)
                worker = None
            self._done.put((job, outcome))
        if worker is not None:
            worker.end()


class _Worker:
    def __init__(self, command, lost):
        self._lost = lost
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that what it starts can be ended with it
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

    def attempt(self, job, seconds):
        if not self._ready and not self._starts():
            self.end()
            return self._lost(job, {}, "start", "does not come to its end", "error")
        step, so_far = "start", {}
        try:
            self._process.stdin.write(f"{job}\n")
            self._process.stdin.flush()
            limit = Limit(self._process.pid, seconds)
            while True:
                answer = self._answer(limit)
                if answer is None:
                    raise BrokenPipeError
                if "outcome" in answer:
                    return answer["outcome"]
                step, so_far = answer["step"], answer.get("so_far", so_far)
        except TimeoutError as error:
            self.end()
            return self._lost(job, so_far, step, str(error), "timeout")
        except BrokenPipeError:
            self._process.wait()
            why = f"ends the process with {self._process.returncode}{self._last_words()}"
            self.end()
            return self._lost(job, so_far, step, why, "error")

    def _starts(self):
        try:
            self._ready = self._answer(Limit(self._process.pid, STARTING_SECONDS)) is not None
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
        end_group(self._process)
