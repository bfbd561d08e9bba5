"""What a worker of the pool does: jobs from its input, outcomes to its output."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from .columns import OUTCOMES, attempts
from .tpu import use_environment


@dataclass(frozen=True, slots=True)
class Job:
    """A launch, attempted in a column.

    Attributes:
      column: which column.
      path: the file of the launch.
    """

    column: str
    path: Path

    def __str__(self):
        return f"{self.column}\t{self.path}"


def lost_outcome(job, so_far, step, why, result):
    """The outcome of a job whose worker was lost; what was found before stays so."""
    outcome = OUTCOMES[job.column](**so_far)
    outcome.lost(step, why, result)
    return outcome.as_dict()


def serve(columns, **options):
    """Does the jobs that come; never returns before its input ends.

    Args:
      columns: what is attempted.
      options: as `attempts` takes them.
    """
    from .pretence import pretended_gpu

    use_environment()
    # What packages print must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(**message):
        answers.write(json.dumps(message) + "\n")

    def announce(step, outcome):
        say(step=step, so_far=outcome.as_dict())

    with attempts(columns, announce, **options) as made, pretended_gpu():
        say(ready=True)
        for line in sys.stdin:
            column, path = line.rstrip("\n").split("\t")
            say(outcome=made[column].run(path).as_dict())
