"""What comes of one collected launch, in each column of the benchmark."""

from dataclasses import asdict, dataclass, field


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of one launch.

    Attributes:
      result: `verified`, `refused`, `not equal`, `unjudged`, `error` or `timeout`, and what a
        column has besides.
      reason: why it is not verified.
      place: the kernel's file and line of the reason; of an error of ours, our own.
      launch: the launch in one line.
      seconds: by step.
      trace: the traceback of an error of ours.
    """

    result: str = ""
    reason: str = ""
    place: str = ""
    launch: str = ""
    seconds: dict = field(default_factory=dict)
    trace: str = ""

    def lost(self, step, why, result):
        """Puts down that the process ended in a step: `result` for this reason."""
        self.result, self.reason = result, f"the step `{step}` {why}"

    def as_dict(self):
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class JaxOutcome(Outcome):
    """What came of a launch as JAX.

    Attributes:
      access: the worst class of an access.
      accesses: how many accesses are of each class.
      notes: what the emitter says of the function, such as what runs serially.
      rungs: the steps of the proof that were not made, with the reason.
      tpu: `yes`, `no`, or empty where it was not tried.
      tpu_reason: why it does not compile.
    """

    access: str = ""
    accesses: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    rungs: list = field(default_factory=list)
    tpu: str = ""
    tpu_reason: str = ""

    def lost(self, step, why, result):
        """As for any; what was proved before a compiler ended the process stays so."""
        if step == "compile":
            self.tpu, self.tpu_reason = "no", f"to compile it {why}"
        else:
            super(JaxOutcome, self).lost(step, why, result)


@dataclass(slots=True, kw_only=True)
class PallasOutcome(Outcome):
    """What came of a launch as a Pallas kernel.

    Its result may also be `fallback`, where only JAX can hold the kernel, and `does not compile`.

    Attributes:
      emitted: whether a Pallas kernel was.
      line: the kernel's line at the place of the reason.
      interpreted: how it did in Pallas's interpreter: `yes` where it gave what the evaluator gave,
        `no`, `skipped`, or empty where it was not tried.
      tpu_interpreted: how it did in the TPU interpreter, likewise.
      compiled: for each generation tried, whether it compiles: `yes`, `no` or `skipped`.
      reasons: why not, of each of these, by its name.
      notes: what the emitter says of the function.
    """

    emitted: bool = False
    line: str = ""
    interpreted: str = ""
    tpu_interpreted: str = ""
    compiled: dict = field(default_factory=dict)
    reasons: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
