"""The outcomes as text: a line a kernel, a table a package, and the failures by cause."""

import re
from collections import defaultdict

# The worst that any variant of a kernel came to is what the kernel came to.
RESULTS = ("not equal", "error", "timeout", "unjudged", "refused", "verified")
COLUMNS = ("kernels", *reversed(RESULTS), "TPU yes", "TPU no")
ATTEMPTED = 400
_SPECIFIC = re.compile(r"`[^`]*`|\d[\d.e+-]*|\([^)]*\)|\[[^\]]*\]|'[^']*'")


def by_kernel(rows):
    """The rows of each kernel as one: the worst result, with the row that has it."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["package"], row["name"]].append(row)
    kernels = []
    for group in groups.values():
        worst = min(group, key=lambda row: RESULTS.index(row["result"]))
        compiled = [row["tpu"] for row in group if row["tpu"]]
        tpu = "no" if "no" in compiled else "yes" if compiled else ""
        kernels.append({**worst, "tpu": tpu, "variants": len(group)})
    return sorted(kernels, key=lambda row: (row["package"], row["name"]))


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
    packages = sorted({row["package"] for row in kernels})
    lines = ["  ".join([f"{'package':22}", *(f"{name:>9}" for name in COLUMNS)])]
    for package in [*packages, "all"]:
        own = [row for row in kernels if package in (row["package"], "all")]
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
    """What is not verified, and what does not compile, by cause: the most frequent first.

    Args:
      rows: the outcomes.
      command: reproduces one, given the name of its stored launch.
    """
    groups = defaultdict(list)
    for row in rows:
        if row["result"] != "verified":
            groups[row["result"], _cause(row["reason"])].append(row)
        if row["tpu"] == "no":
            groups["TPU", _cause(row["tpu_reason"])].append({**row, "reason": row["tpu_reason"]})
    order = [*RESULTS[:-1], "TPU"]
    lines = []
    for result in order:
        own = [(cause, group) for (kind, cause), group in groups.items() if kind == result]
        if not own:
            continue
        kernels = {row["name"] for _, group in own for row in group}
        lines += [f"## {result}: {len(kernels)} kernels", ""]
        for cause, group in sorted(own, key=lambda each: -len({row["name"] for row in each[1]})):
            names = sorted({row["name"] for row in group})
            lines += [f"### {len(names)} kernels: {cause}", ""]
            for name in names[:3]:
                row = next(each for each in group if each["name"] == name)
                lines += [f"- `{name}` {row['place']}", f"  {row['reason'][:400]}"]
                lines += [f"  {row['launch'][:300]}", f"  `{command} --only '{row['file']}'`"]
            if len(names) > 3:
                lines.append(f"- and {', '.join(f'`{name}`' for name in names[3:])}")
            lines.append("")
    return "\n".join(lines)


def _cause(reason):
    """A reason without names and numbers, so that the same causes are the same text."""
    return re.sub(r"(…[ ,]*)+", "… ", _SPECIFIC.sub("…", reason)).strip()[:160]
