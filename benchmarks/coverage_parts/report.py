"""The outcomes as JAX as text: a line a launch, a table a package, and the failures by cause."""

from .causes import by_cause
from .kernels import by_package, kernels_of

# The worst that any variant of a kernel came to is what the kernel came to.
RESULTS = ("not equal", "error", "timeout", "unjudged", "refused", "verified")
COLUMNS = ("kernels", *reversed(RESULTS), "TPU yes", "TPU no")
ATTEMPTED = 400


def by_kernel(rows):
    """The rows of each kernel as one: the worst result, with the row that has it."""
    kernels = []
    for worst, group in kernels_of(rows, RESULTS):
        compiled = [row["tpu"] for row in group if row["tpu"]]
        tpu = "no" if "no" in compiled else "yes" if compiled else ""
        kernels.append({**worst, "tpu": tpu, "variants": len(group)})
    return kernels


def line(row):
    """One launch in one line."""
    seconds = sum(row["seconds"].values())
    parts = [f"{row['package']}  {row['name']}", row["access"] or "-", row["result"]]
    if row["reason"]:
        parts.append(f"{row['place']}: {row['reason']}" if row["place"] else row["reason"])
    if row["tpu"]:
        parts.append(f"TPU {row['tpu']}" + (f": {row['tpu_reason']}" if row["tpu_reason"] else ""))
    return "  |  ".join([*parts, f"{seconds:.1f} s"])


def table(rows):
    """Counts by package of distinct kernels, and how they stand against the targets."""
    kernels = by_kernel(rows)
    lines = ["  ".join([f"{'package':22}", *(f"{name:>9}" for name in COLUMNS)])]
    for package, own in by_package(kernels):
        counts = [len(own)]
        counts += [sum(row["result"] == result for row in own) for result in reversed(RESULTS)]
        counts += [sum(row["tpu"] == answer for row in own) for answer in ("yes", "no")]
        lines.append("  ".join([f"{package:22}", *(f"{count:9}" for count in counts)]))
    lines += ["", *_targets(rows, kernels)]
    return "\n".join(lines)


def _targets(rows, kernels):
    total = len(kernels) or 1
    verified = sum(row["result"] == "verified" for row in kernels)
    honest = sum(row["result"] in ("verified", "refused") for row in kernels)
    wrong = sum(row["result"] == "not equal" for row in kernels)
    compiled = [row["tpu"] for row in kernels if row["tpu"]]
    yield f"attempted: {len(kernels)} kernels, {len(rows)} variants (target: {ATTEMPTED} kernels)"
    yield f"translated and verified: {verified / total:.1%} (target: 85 %)"
    yield f"verified or refused at a place: {honest / total:.1%} (target: 97 %)"
    yield f"not equal: {wrong} (target: 0)"
    if compiled:
        yes = compiled.count("yes") / len(compiled)
        yield f"compile for TPU v5e, of those tried: {yes:.1%} (target: 95 %)"


def causes(rows, command):
    """What is not verified, and what does not compile, by cause.

    Args:
      rows: the outcomes.
      command: reproduces one, given the name of its stored launch.
    """
    sections = [
        (result, [row for row in rows if row["result"] == result]) for result in RESULTS[:-1]
    ]
    refused = [{**row, "reason": row["tpu_reason"]} for row in rows if row["tpu"] == "no"]
    return by_cause([*sections, ("TPU", refused)], command)
