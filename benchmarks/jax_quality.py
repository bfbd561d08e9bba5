"""Seconds of emitted JAX against hand-written JAX of the same mathematics, as the compiler has it.

    python benchmarks/jax_quality.py [--tutorials DIRECTORY] [--only NAME] [--dump DIRECTORY]

Both are compiled ahead of time for chips that are not there. `optimal` is the `optimal_seconds` of
`compiled.cost_analysis()`, which counts the body of a loop once; `step` is the modelled step of
`hlo_tools`, which multiplies it by its trip count. Both are models, not measurements. A ratio above
1.2 is marked.

With the tutorials of Triton (`python/tutorials` of its repository, which needs torch) their
kernels are measured too, among them attention, with `bfloat16` in the place of `float16`, which
TPUs do not compute with.

What is measured is first compared on a CPU. `--dump` writes the emitted source and both programs'
compiled HLO.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
os.environ["TPU_ACCELERATOR_TYPE"] = "v5litepod-4"
os.environ["TPU_WORKER_HOSTNAMES"] = "localhost"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402

from hlo_tools.analysis.asynchrony import Asynchrony  # noqa: E402
from hlo_tools.analysis.collectives import Collectives  # noqa: E402
from hlo_tools.analysis.cost import CostModel  # noqa: E402
from hlo_tools.analysis.execution import Execution  # noqa: E402
from hlo_tools.errors import InputError  # noqa: E402
from hlo_tools.hardware import chip  # noqa: E402
from hlo_tools.hlo.parser import parse_module  # noqa: E402
from translators.translation import Translation, translate  # noqa: E402
from translators.triton.binding import bind  # noqa: E402
from translators.triton.kernels import find_kernel  # noqa: E402
from translators.triton.launch_text import parse_argument, parse_constant  # noqa: E402
from translators.triton.launches import grid_of_three  # noqa: E402
from translators.triton.loading import load_file  # noqa: E402

KERNELS = ROOT / "tests" / "triton" / "kernels.py"
TOPOLOGIES = {"v5e": "v5e:2x2", "v6e": "v6e:2x2"}
LIMIT = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kernel, what it is launched with, and what one would write instead.

    Attributes:
      name: what the table calls it.
      file: the kernel's file, or the name of a tutorial.
      kernel: the kernel's name.
      arguments: arrays and numbers, as `parse_argument` reads them.
      constants: constants, as `parse_constant` reads them.
      grid: programs along each axis.
      reference: takes the arrays that the kernel reads, in the order of its parameters, and gives
        what it writes.
      results: the parameters that the reference gives; the kernel may write more.
      rewrite: text to put in the place of other text in the kernel's file.
      tolerance: how far results may lie apart, as a share of the largest element.
    """

    name: str
    file: str
    kernel: str
    arguments: tuple[str, ...]
    constants: tuple[str, ...]
    grid: tuple[int, ...]
    reference: Callable[..., Any]
    results: tuple[str, ...]
    rewrite: tuple[str, str] | None = None
    tolerance: float = 1e-5


def matmul_cases() -> Iterator[Case]:
    size = 1024
    strides = [f"stride_{each}" for each in ("am", "ak", "bk", "bn", "cm", "cn")]
    values = (size, 1, size, 1, size, 1)
    for dtype, precision in (("f32", "highest"), ("bf16", "default")):

        def multiplied(a: Any, b: Any, precision: str = precision) -> Any:
            return jnp.matmul(a, b, precision=precision, preferred_element_type=jnp.float32)

        yield Case(
            name=f"matmul {dtype} 1024x1024x1024",
            file=str(KERNELS),
            kernel="matmul",
            arguments=(
                f"a_ptr={dtype}[{size},{size}]",
                f"b_ptr={dtype}[{size},{size}]",
                f"c_ptr=f32[{size},{size}]",
                *(f"{name}={size}" for name in "MNK"),
                *(f"{name}={value}" for name, value in zip(strides, values, strict=True)),
            ),
            constants=("BLOCK_M=64", "BLOCK_N=64", "BLOCK_K=32", "ACTIVATION='none'"),
            grid=(size // 64, size // 64),
            reference=multiplied,
            results=("c_ptr",),
        )


def softmax_cases() -> Iterator[Case]:
    for rows, columns, block in ((4096, 1024, 1024), (4096, 781, 1024)):
        yield Case(
            name=f"softmax f32 {rows}x{columns}",
            file=str(KERNELS),
            kernel="softmax",
            arguments=(
                f"out_ptr=f32[{rows},{columns}]",
                f"x_ptr=f32[{rows},{columns}]",
                f"out_stride={columns}",
                f"x_stride={columns}",
                f"columns={columns}",
            ),
            constants=(f"BLOCK={block}",),
            grid=(rows,),
            reference=jax.nn.softmax,
            results=("out_ptr",),
        )


def layer_norm_cases() -> Iterator[Case]:
    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        centred = x - mean
        rstd = jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
        return centred * rstd * weight + bias, mean[:, 0], rstd[:, 0]

    for rows, columns, block in ((4096, 1024, 256), (4096, 1024, 1024), (4096, 781, 256)):
        yield Case(
            name=f"layer norm f32 {rows}x{columns} block {block}",
            file=str(KERNELS),
            kernel="layer_norm",
            arguments=(
                f"x_ptr=f32[{rows},{columns}]",
                f"y_ptr=f32[{rows},{columns}]",
                f"w_ptr=f32[{columns}]",
                f"b_ptr=f32[{columns}]",
                f"mean_ptr=f32[{rows}]",
                f"rstd_ptr=f32[{rows}]",
                f"stride={columns}",
                f"columns={columns}",
                "eps=1e-5",
            ),
            constants=(f"BLOCK={block}",),
            grid=(rows,),
            reference=layer_norm,
            results=("y_ptr", "mean_ptr", "rstd_ptr"),
        )


def tutorial_cases() -> Iterator[Case]:
    rows, columns = 4096, 781
    yield Case(
        name="tutorial 02: softmax f32 4096x781",
        file="02-fused-softmax.py",
        kernel="softmax_kernel",
        arguments=(
            f"output_ptr=f32[{rows},{columns}]",
            f"input_ptr=f32[{rows},{columns}]",
            f"input_row_stride={columns}",
            f"output_row_stride={columns}",
            f"n_rows={rows}",
            f"n_cols={columns}",
        ),
        constants=("BLOCK_SIZE=1024", "num_stages=4"),
        grid=(256,),
        reference=jax.nn.softmax,
        results=("output_ptr",),
    )
    size = 1024
    yield Case(
        name="tutorial 03: matmul bf16 1024x1024x1024",
        file="03-matrix-multiplication.py",
        kernel="matmul_kernel",
        arguments=(
            *(f"{name}_ptr=bf16[{size},{size}]" for name in "abc"),
            *(f"{name}={size}" for name in "MNK"),
            *(f"stride_{name}={size}" for name in ("am", "bk", "cm")),
            *(f"stride_{name}=1" for name in ("ak", "bn", "cn")),
        ),
        constants=(
            "BLOCK_SIZE_M=128",
            "BLOCK_SIZE_N=256",
            "BLOCK_SIZE_K=64",
            "GROUP_SIZE_M=8",
            "ACTIVATION=''",
        ),
        grid=((size // 128) * (size // 256),),
        reference=lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32).astype(a.dtype),
        results=("c_ptr",),
        rewrite=("tl.float16", "tl.bfloat16"),
        tolerance=1e-2,
    )
    yield from attention_cases()


def attention_cases() -> Iterator[Case]:
    """Each against plain attention, and against attention that gives what the kernel gives.

    The kernel also stores the logarithm of each row's sum, in base 2, for its backward pass.
    """
    batch, heads, length, width = 2, 4, 1024, 64
    scale = 0.125
    strides = (heads * length * width, length * width, width, 1)
    axes = {"q": "zhmk", "k": "zhnk", "v": "zhkn", "o": "zhmn"}

    def plain(q: Any, k: Any, v: Any, causal: bool) -> Any:
        q, k, v = (each.swapaxes(1, 2) for each in (q, k, v))
        out = jax.nn.dot_product_attention(q, k, v, scale=scale, is_causal=causal)
        return out.swapaxes(1, 2)

    def with_sums(q: Any, k: Any, v: Any, causal: bool) -> Any:
        logits = scale * jnp.einsum("zhmk,zhnk->zhmn", q, k, preferred_element_type=jnp.float32)
        if causal:
            rows, columns = jnp.arange(length)[:, None], jnp.arange(length)
            logits = jnp.where(rows >= columns, logits, -jnp.inf)
        sums = jax.nn.logsumexp(logits, axis=-1)
        share = jnp.exp(logits - sums[..., None]).astype(q.dtype)
        return jnp.einsum("zhmn,zhnk->zhmk", share, v), sums / math.log(2)

    for causal, (given, reference, results) in product(
        (False, True),
        (("", plain, ("Out",)), (" and sums", with_sums, ("Out", "M"))),
    ):
        yield Case(
            name=f"tutorial 06: attention{given} bf16{' causal' if causal else ''}",
            file="06-fused-attention.py",
            kernel="_attn_fwd",
            arguments=(
                *(f"{each}=bf16[{batch},{heads},{length},{width}]" for each in "QKV"),
                f"sm_scale={scale}",
                f"M=f32[{batch},{heads},{length}]",
                f"Out=bf16[{batch},{heads},{length},{width}]",
                *(
                    f"stride_{array}{axis}={stride}"
                    for array, letters in axes.items()
                    for axis, stride in zip(letters, strides, strict=True)
                ),
                f"Z={batch}",
                f"H={heads}",
                f"N_CTX={length}",
            ),
            constants=(
                f"HEAD_DIM={width}",
                "BLOCK_M=128",
                "BLOCK_N=64",
                f"STAGE={3 if causal else 1}",
            ),
            grid=(length // 128, batch * heads),
            reference=partial(reference, causal=causal),
            results=results,
            rewrite=("tl.float16", "tl.bfloat16"),
            tolerance=1e-2,
        )


@dataclass(slots=True)
class Modelled:
    """What the models say of a compiled program.

    Attributes:
      optimal: the compiler's `optimal_seconds`, of what it gives an estimate for.
      unestimated: the instructions that it gives none for, for each of which it counts -1 second.
      step: the seconds of a step.
      unknown_loops: the loops whose trip count is unknown, which `step` counts once.
      text: the compiled HLO.
    """

    optimal: float
    unestimated: int
    step: float
    unknown_loops: int
    text: str

    def notes(self, side: str) -> str:
        found = []
        if self.unestimated:
            found.append(f"{self.unestimated} instructions without an estimate")
        if self.unknown_loops:
            found.append(f"{self.unknown_loops} loops of unknown length")
        return f"  {side}: {', '.join(found)}" if found else ""


def measured(function: Callable[..., Any], types: list[Any], generation: str) -> Modelled:
    topology = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[generation])
    sharding = jax.sharding.SingleDeviceSharding(topology.devices[0])
    placed = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding) for each in types]
    compiled = jax.jit(function).lower(*placed).compile()
    text = compiled.as_text()
    module = parse_module(text)
    execution = Execution(module)
    collectives = Collectives(module, execution, Asynchrony(module, execution))
    model = CostModel(module, execution, collectives, chip(generation))
    optimal = compiled.cost_analysis()["optimal_seconds"]
    unestimated = max(0, math.ceil(-optimal))
    return Modelled(
        optimal=optimal + unestimated,
        unestimated=unestimated,
        step=model.step_seconds,
        text=text,
        unknown_loops=len(execution.unknown_loops),
    )


def translated(case: Case, tutorials: Path | None) -> Translation:
    path = Path(case.file)
    if not path.is_absolute():
        path = tutorials / path
    with tempfile.TemporaryDirectory() as directory:
        if case.rewrite is not None:
            text = path.read_text(encoding="utf-8").replace(*case.rewrite)
            path = Path(directory, path.stem.replace("-", "_") + "_rewritten.py")
            path.write_text(text, encoding="utf-8")
        kernel = find_kernel(load_file(path), case.kernel)
        arguments = [
            parse_argument(text, buffer=index) for index, text in enumerate(case.arguments)
        ]
        arguments += [parse_constant(text) for text in case.constants]
        return translate(kernel, bind(kernel, arguments, grid=grid_of_three(case.grid)))


def prepared(case: Case, translation: Translation) -> tuple[Callable[..., Any], list[Any]]:
    """The emitted function, giving what the reference gives; and the arrays that both take."""
    function, whole = translation.function, translation.load()
    arrays = {array.name: array for array in translation.launch.arrays}
    rng = np.random.default_rng(0)
    values = [
        jnp.asarray(
            rng.standard_normal(arrays[name].shape),
            {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}[arrays[name].dtype],
        )
        for name in function.parameters
    ]

    def results(*given: Any) -> Any:
        out = whole(*given)
        named = dict(
            zip(function.results, out if len(function.results) > 1 else (out,), strict=True)
        )
        # What the reference does not give is computed all the same, as in the kernel.
        rest = tuple(value for name, value in named.items() if name not in case.results)
        return (*(named[name] for name in case.results), *rest)

    return results, values


def difference_of(case: Case, function: Callable[..., Any], values: list[Any]) -> float:
    """The largest difference between the two on a CPU, as a share of the largest element."""
    got = jax.jit(function)(*values)
    wanted = jax.tree.leaves(jax.jit(case.reference)(*values))
    pairs = [
        (each.astype(jnp.float32), other.astype(jnp.float32))
        for each, other in zip(got, wanted, strict=False)
    ]
    return max(
        float(jnp.max(jnp.abs(each - other)) / jnp.max(jnp.abs(other))) for each, other in pairs
    )


def lines(case: Case, tutorials: Path | None, dump: Path | None) -> Iterator[str]:
    try:
        start = time.perf_counter()
        translation = translated(case, tutorials)
        seconds = time.perf_counter() - start
    except InputError as error:
        yield f"{case.name:44} refused: {error}"
        return
    function, values = prepared(case, translation)
    try:
        difference = difference_of(case, function, values)
        if not difference <= case.tolerance:
            yield f"{case.name:44} DIFFERS by {difference:.2g}"
    except jax.errors.JaxRuntimeError as error:
        yield f"{case.name:44} does not run on a CPU: {str(error)[-90:]}"
    for generation in TOPOLOGIES:
        ours = measured(function, values, generation)
        theirs = measured(case.reference, values, generation)
        ratios = (ours.optimal / theirs.optimal, ours.step / theirs.step)
        marks = ["!" if ratio > LIMIT else " " for ratio in ratios]
        notes = ours.notes("emitted") + theirs.notes("by hand")
        yield (
            f"{case.name:44} {generation} "
            f"{1e6 * ours.optimal:9.1f} {1e6 * theirs.optimal:9.1f} {ratios[0]:7.2f}{marks[0]} "
            f"{1e6 * ours.step:9.1f} {1e6 * theirs.step:9.1f} {ratios[1]:7.2f}{marks[1]}"
            f"{seconds:7.2f}{notes}"
        )
        if dump is not None:
            stem = "".join(each if each.isalnum() else "_" for each in case.name)
            dump.mkdir(parents=True, exist_ok=True)
            (dump / f"{stem}.py").write_text(translation.function.source, encoding="utf-8")
            for side, program in (("ours", ours), ("theirs", theirs)):
                path = dump / f"{stem}.{generation}.{side}.hlo.txt"
                path.write_text(program.text, encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tutorials", type=Path)
    options.add_argument("--only", default="", help="a part of the names of what is measured")
    options.add_argument("--dump", type=Path)
    chosen = options.parse_args()
    cases = [*matmul_cases(), *softmax_cases(), *layer_norm_cases()]
    if chosen.tutorials is not None:
        cases += tutorial_cases()
    print(f"{'':44}      {'optimal, microseconds':>27}  {'step, microseconds':>28}  translated")
    print(
        f"{'':44}      {'emitted':>9} {'by hand':>9} {'ratio':>7} {'emitted':>10} {'by hand':>9}"
        f" {'ratio':>7}  seconds"
    )
    for case in cases:
        if chosen.only in case.name:
            for line in lines(case, chosen.tutorials, chosen.dump):
                print(line, flush=True)


if __name__ == "__main__":
    main()
