"""Seconds that the translation of a kernel takes, stage by stage, once Triton and jax are imported.

    python benchmarks/translation_speed.py [--tutorials DIRECTORY] [--rounds 5]

Nothing is verified and nothing is run. `front end` is Triton's own, from the kernel's source to
its IR; `graph` reads and verifies that; `accesses` analyses it; `emission` writes the JAX function.
Each is the median of some rounds. Kernels are those of the tests and, where their directory is
given (`python/tutorials` of Triton's repository, which needs torch), of Triton's tutorials. The
target is a second for a typical kernel.
"""

import argparse
import contextlib
import io
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hlo_tools.errors import InputError  # noqa: E402
from translators.access.analysis import analyze  # noqa: E402
from translators.emit.jax import emit_jax  # noqa: E402
from translators.graph.verifier import verify  # noqa: E402
from translators.specializing import specialization  # noqa: E402
from translators.translation import argument_facts, translate  # noqa: E402
from translators.triton.binding import bind  # noqa: E402
from translators.triton.frontend import triton_ir  # noqa: E402
from translators.triton.kernels import find_kernel  # noqa: E402
from translators.triton.launch_text import parse_argument, parse_constant  # noqa: E402
from translators.triton.launches import Launch, grid_of_three  # noqa: E402
from translators.triton.loading import load_file  # noqa: E402
from translators.triton.recorder import record_call  # noqa: E402
from translators.triton.ttir import read_ttir  # noqa: E402

KERNELS = ROOT / "tests" / "triton" / "kernels.py"
STAGES = ("front end", "graph", "accesses", "emission")
LIMIT = 1.0

# Calls of the host functions of the tests' kernels.
CALLS = (
    "add(f32[98432], f32[98432])",
    "tuned(f32[98432], f32[98432])",
    "multiply(f32[500,300], f32[300,700])",
    "multiply(bf16[512,512], bf16[512,512], activation='relu')",
    "warmed_softmax(f32[1823,781])",
)

# Kernels without a host function: their arguments, and the grid.
LAUNCHES = (
    (
        "layer_norm",
        (
            *("x_ptr=f32[64,1000]", "y_ptr=f32[64,1000]", "w_ptr=f32[1000]", "b_ptr=f32[1000]"),
            *("mean_ptr=f32[64]", "rstd_ptr=f32[64]", "stride=1000", "columns=1000", "eps=1e-5"),
        ),
        ("BLOCK=256",),
        (64,),
    ),
    ("early_returns", ("x_ptr=f32[512]", "out_ptr=f32[512]", "limit=3"), ("BLOCK=64",), (8,)),
    (
        "block_pointer_copy",
        ("x_ptr=f32[100,70]", "out_ptr=f32[70,100]", "rows=100", "columns=70", "stride=70"),
        ("BLOCK=16",),
        (7,),
    ),
    ("sort_rows", ("x_ptr=f32[1024]", "out_ptr=f32[1024]"), ("BLOCK=128",), (8,)),
)

# The tutorials' own calls.
TUTORIALS = (
    ("01-vector-add.py", "add(f32[98432], f32[98432])"),
    ("02-fused-softmax.py", "softmax(f32[1823,781])"),
    ("03-matrix-multiplication.py", "matmul(f16[512,512], f16[512,512])"),
    ("04-low-memory-dropout.py", "seeded_dropout(f32[10000], 0.5, 123)"),
    ("05-layer-norm.py", "layer_norm(f16[1151,8192], none, f16[8192], f16[8192], 0.00001)"),
    (
        "06-fused-attention.py",
        "attention(f16[1,2,1024,64], f16[1,2,1024,64], f16[1,2,1024,64], false, 0.5)",
    ),
)


def kernels(tutorials: Path | None) -> Iterator[tuple[str, Any, Launch]]:
    """What is translated: a name, the kernel, and its launch."""
    module = load_file(KERNELS)
    for call in CALLS:
        for recorded in record_call(module, call):
            yield call, recorded.kernel, recorded.launch
    for name, arguments, constants, grid in LAUNCHES:
        given = [parse_argument(text, buffer=index) for index, text in enumerate(arguments)]
        given += [parse_constant(text) for text in constants]
        kernel = find_kernel(module, name)
        yield name, kernel, bind(kernel, given, grid=grid_of_three(grid))
    if tutorials is None:
        return
    for file, call in TUTORIALS:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                launches = record_call(load_file(tutorials / file), call)
        except InputError as error:
            print(f"{file[:60]:60} refused: {error.message}")
            continue
        for recorded in launches:
            yield f"{file[:2]} {recorded.launch.kernel.function}", recorded.kernel, recorded.launch


def stages(kernel: Any, launch: Launch) -> list[float]:
    """The seconds of each stage, once."""
    seconds: list[float] = []

    def timed(function: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
        return result

    def graph() -> Any:
        module = read_ttir(text)
        verify(module)
        return module

    text = timed(lambda: triton_ir(kernel, launch))
    module = timed(graph)
    analysis = timed(lambda: analyze(module, specialization(module, launch)))
    timed(lambda: emit_jax(module, analysis, argument_facts(module, launch)))
    return seconds


def line(name: str, kernel: Any, launch: Launch, rounds: int) -> tuple[str, float | None]:
    """A line of the table, and the seconds of the whole."""
    try:
        translate(kernel, launch)  # what is imported and set up once is not counted
        measured = [stages(kernel, launch) for _ in range(rounds)]
    except InputError as error:
        return f"{name[:60]:60} refused: {error.message}", None
    medians = [statistics.median(each) for each in zip(*measured, strict=True)]
    whole = statistics.median(sum(each) for each in measured)
    numbers = " ".join(f"{1e3 * value:9.1f}" for value in (*medians, whole))
    return f"{name[:60]:60} {numbers}{' !' if whole > LIMIT else ''}", whole


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tutorials", type=Path)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'milliseconds':60} {' '.join(f'{each:>9}' for each in (*STAGES, 'whole'))}")
    wholes = []
    for name, kernel, launch in kernels(chosen.tutorials):
        text, whole = line(name, kernel, launch, chosen.rounds)
        print(text, flush=True)
        if whole is not None:
            wholes.append(whole)
    print(
        f"{len(wholes)} kernels: median {1e3 * statistics.median(wholes):.0f} ms, "
        f"slowest {1e3 * max(wholes):.0f} ms"
    )


if __name__ == "__main__":
    main()
