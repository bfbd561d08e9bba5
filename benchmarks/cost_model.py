"""Seconds of the roofline model against the compiler's own `estimated_cycles`.

    python benchmarks/cost_model.py [PATH...]

Prints, for the instructions that the TPU compiler gave an estimate for, the ratio of
`CostModel.model_seconds` to that estimate over the clock: its median, and the median and 90th
percentile of the factor by which the two differ. By default over the TPU dumps of
../shared/corpus; any dump or directory can be given. The chip is taken from the file's name
(`v5e`, `tpu7x`, ...), otherwise from the text, otherwise v5e is assumed.
"""

import gzip
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hlo_tools.analysis.asynchrony import Asynchrony  # noqa: E402
from hlo_tools.analysis.collectives import Collectives  # noqa: E402
from hlo_tools.analysis.cost import CostModel  # noqa: E402
from hlo_tools.analysis.execution import Execution  # noqa: E402
from hlo_tools.hardware import Chip, chip, detect_chip  # noqa: E402
from hlo_tools.hlo.module import Instruction, Module  # noqa: E402
from hlo_tools.hlo.parser import parse_module  # noqa: E402

CORPUS = ROOT.parent / "shared" / "corpus"
ASSUMED = "v5e"
GENERATION = re.compile(r"(v4|v5e|v5p|v6e|7x)(?=\d*[_.])")
KIND = re.compile(r"\bkind=k(\w+)")


def dumps(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.glob("*.txt*")) if path.is_dir() else [path]


def chip_of(path: Path, module: Module) -> Chip:
    named = GENERATION.search(path.name)
    return chip(named[1]) if named else detect_chip(module) or chip(ASSUMED)


def kind_of(model: CostModel, instruction: Instruction) -> str:
    kind = KIND.search(instruction.attribute_text)
    work = model.work(instruction)
    matrix = " with dot" if work and work.matmuls else ""
    return f"{instruction.opcode}{f' {kind[1]}' if kind else ''}{matrix}"


def ratios(path: Path) -> Iterator[tuple[str, str, float]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    module = parse_module(text)
    execution = Execution(module)
    collectives = Collectives(module, execution, Asynchrony(module, execution))
    model = CostModel(module, execution, collectives, chip_of(path, module))
    assert model.chip is not None
    for instruction in execution.instructions():
        cycles = model.compiler_cycles(instruction)
        seconds = model.model_seconds(instruction)
        if cycles and seconds and model.chip.clock_hz:
            ratio = seconds * model.chip.clock_hz / cycles
            yield kind_of(model, instruction), model.chip.name, ratio


def row(name: str, values: list[float]) -> str:
    factors = [math.exp(abs(math.log(value))) for value in values]
    worst = quantiles(factors, n=10)[-1] if len(factors) > 1 else factors[0]
    return f"{name:24} {len(values):6} {median(values):9.2f} {median(factors):9.2f} {worst:9.2f}"


def main() -> None:
    given = [Path(argument) for argument in sys.argv[1:]]
    paths = given or [CORPUS / "hlo_tpu_aot", *sorted((CORPUS / "hlo").glob("tpu_*"))]
    by_kind: dict[str, list[float]] = defaultdict(list)
    by_chip: dict[str, list[float]] = defaultdict(list)
    for path in dumps(paths):
        if path.name.endswith((".txt", ".gz")):
            for kind, generation, ratio in ratios(path):
                by_kind[kind].append(ratio)
                by_chip[generation].append(ratio)
    print(f"{'':24} {'count':>6} {'ratio':>9} {'factor':>9} {'factor':>9}")
    print(f"{'':24} {'':>6} {'median':>9} {'median':>9} {'p90':>9}")
    for groups in (by_kind, by_chip):
        for name in sorted(groups):
            print(row(name, groups[name]))
        print()
    print(row("all", [ratio for values in by_chip.values() for ratio in values]))


if __name__ == "__main__":
    main()
