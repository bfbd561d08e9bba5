"""What came of launches, as a table with a row for each kernel."""

import math
import re

# The rungs under short names, in the order of the ladder.
SHORT = {
    "JAX against the evaluator": "evaluator",
    "Pallas against the evaluator": "evaluator",
    "evaluator against Triton's interpreter": "Triton's interpreter",
    "programs in another order": "order",
    "poison in what is not read": "poison",
    "NaN and infinities": "NaN",
    "other scalars": "scalars",
    "Pallas in TPU interpret mode": "TPU interpreter",
}


def line(result):
    """One launch, for those who wait."""
    text = f"{result['seconds']:6.1f} s  {result['result']:10}  {result.get('emitted', ''):6}  "
    text += f"{result['package']} {result['kernel']} ({result['unit']})"
    reasons = [result.get("reason", ""), result.get("instead", "")]
    return ": ".join([text, *filter(None, reasons)])


def keep(folder, result):
    """Writes the emitted source, the accesses and the rungs of a launch into files."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"\W+", "_", f"{result['package']} {result['unit']} {result['kernel']}")
    digest = result["file"].rpartition("@")[2].partition(".")[0]
    parts = [line(result), result.get("launch", ""), *result.get("notes", ())]
    parts += [str(rung) for rung in result.get("rungs", ())]
    parts += [result.get(key, "") for key in ("trace", "accesses", "source", "pallas_source")]
    (folder / f"{stem}_{digest}.txt").write_text("\n".join(parts), encoding="utf-8")


def table(results):
    """A row for each kernel, over all its launches."""
    kernels = {}
    for result in results:
        key = (result["package"], result["module"], result["kernel"])
        kernels.setdefault(key, []).append(result)
    lines = [
        "| package | kernel | launches (kinds) | emitted | verified by | worst error |",
        "|---|---|---|---|---|---|",
    ]
    for (package, _, kernel), each in kernels.items():
        cells = (package, kernel, _launches(each), _emitted(each), _verified(each), _worst(each))
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join([*lines, "", summary(results, len(kernels))])


def summary(results, kernels):
    """How many launches came out how."""
    pallas = sum(result.get("emitted") == "pallas" for result in results)
    jax = sum(result.get("emitted") == "jax" for result in results)
    verified = sum(result["result"] == "verified" for result in results)
    return (
        f"{kernels} kernels, {len(results)} kinds of launches: {pallas} as Pallas, {jax} as JAX, "
        f"{len(results) - pallas - jax} not translated; {verified} verified"
    )


def _launches(results):
    units = {result["unit"]: result["launches"] for result in results}
    return f"{sum(units.values())} ({len(results)})"


def _emitted(results):
    """What is emitted for how many, and why what is not Pallas is not."""
    parts = []
    for language, name in (("pallas", "Pallas"), ("jax", "JAX"), ("", "nothing")):
        these = [result for result in results if result.get("emitted", "") == language]
        if not these:
            continue
        count = "" if len(these) == len(results) else f" ({len(these)})"
        why = [each.get("instead") or each.get("reason", "") for each in these]
        reasons = "; ".join(dict.fromkeys(filter(None, why))) if language != "pallas" else ""
        parts.append(f"{name}{count}{f': {reasons}' if reasons else ''}")
    return ", ".join(parts)


def _verified(results):
    """The rungs that passed, with in how many launches where not in all, and what went wrong."""
    passed = {}
    for result in results:
        for rung in result.get("rungs", ()):
            if rung["status"] == "passed":
                name = rung["generation"] or SHORT.get(rung["name"], rung["name"])
                passed[name] = passed.get(name, 0) + 1
    parts = [
        name if count == len(results) else f"{name} ({count})" for name, count in passed.items()
    ]
    wrong = [
        f"**{result['result']}**: {result['reason']}"
        for result in results
        if result["result"] not in ("verified", "refused")
    ]
    wrong += [f"**Pallas differs**: {each['instead']}" for each in results if each.get("wrong")]
    return "; ".join([", ".join(parts), *dict.fromkeys(wrong)]).strip("; ")


def _worst(results):
    """The greatest difference; `rounding` where it is no more than the kernel's own types allow."""
    compared = [
        (math.inf if rung["ulps"] == "inf" else rung["ulps"], rung["reason"])
        for result in results
        for rung in result.get("rungs", ())
        if rung["ulps"] is not None
    ]
    if not compared:
        return ""
    ulps, reason = max(compared)
    return f"{ulps:.3g} ulps{' (rounding)' if 'rounding' in reason else ''}"
