"""The outcomes as Pallas kernels as text: a line a launch, shares by package, failures by cause."""

from .causes import by_cause
from .kernels import by_package, kernels_of

# The worst that any variant of a kernel came to is what the kernel came to.
RESULTS = (
    *("not equal", "error", "timeout", "does not compile", "unjudged", "refused", "fallback"),
    "verified",
)
STEPS = ("interpreter", "TPU interpreter")
_WORST = ("no", "skipped", "", "yes")


def by_kernel(rows):
    """The rows of each kernel as one; every variant must do what the kernel is said to do."""
    kernels = []
    for worst, group in kernels_of(rows, RESULTS):
        answers = [_answers(row) for row in group]
        names = dict.fromkeys(name for each in answers for name in each)
        together = {
            name: min((each.get(name, "") for each in answers), key=_WORST.index) for name in names
        }
        emitted = all(row["emitted"] for row in group)
        kernels.append({**worst, "emitted": emitted, "answers": together, "variants": len(group)})
    return kernels


def _answers(row):
    return {
        **dict(zip(STEPS, (row["interpreted"], row["tpu_interpreted"]), strict=True)),
        **row["compiled"],
    }


def line(row):
    """One launch in one line."""
    parts = [f"{row['package']}  {row['name']}", "Pallas", row["result"]]
    if row["reason"]:
        parts.append(f"{row['place']}: {row['reason']}" if row["place"] else row["reason"])
    parts += [f"{name} {answer}" for name, answer in _answers(row).items() if answer]
    return "  |  ".join([*parts, f"{sum(row['seconds'].values()):.1f} s"])


def table(rows):
    """Counts by package of distinct kernels, with their shares of those attempted."""
    kernels = by_kernel(rows)
    steps = list(dict.fromkeys(name for row in kernels for name in row["answers"]))
    table = [["package", "kernels", "emitted", *steps, "verified", *reversed(RESULTS[:-1])]]
    for package, own in by_package(kernels):
        counts = [sum(row["emitted"] for row in own)]
        counts += [sum(row["answers"].get(step) == "yes" for row in own) for step in steps]
        counts += [sum(row["result"] == result for row in own) for result in reversed(RESULTS)]
        shares = (f"{count} {count / (len(own) or 1):6.1%}" for count in counts)
        table.append([package, str(len(own)), *shares])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        " | ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])])
        for cells in table
    ]
    total = f"Pallas: {len(kernels)} kernels attempted, {len(rows)} variants"
    return "\n".join([*lines, "", total])


def causes(rows, command):
    """What is not a verified Pallas kernel, by cause.

    Args:
      rows: the outcomes.
      command: reproduces one, given the name of its stored launch.
    """
    first = ("not equal", "error", "fallback")
    order = (*first, *(result for result in RESULTS[:-1] if result not in first))
    sections = [(result, [row for row in rows if row["result"] == result]) for result in order]
    return by_cause(sections, command)
