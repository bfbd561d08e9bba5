"""Kernels in Pallas beside the evaluator, and beside the compiler for TPUs."""

import contextlib
import functools

import numpy as np
import pytest
from kernel_builder import contiguous

from translators.access.analysis import analyze
from translators.access.launch import Buffer, Specialization
from translators.emit.facts import ArrayFact
from translators.emit.pallas.kernel import emit_pallas_kernel
from translators.emit.unsharing import unshared
from translators.graph.evaluator import evaluate
from translators.graph.verifier import verify
from translators.verify.compiler import Compiler, missing
from translators.verify.program import ArrayType, Program

GENERATIONS = ("v5e", "v6e")
_SECONDS = 240.0


def emitted(module, arrays, grid=(1,)):
    """The function in Pallas for a kernel whose arguments are row-major arrays."""
    verify(module)
    apart = unshared(module)
    names = [each.name for each in module.kernel.arguments]
    shapes = {name: arrays[name].shape for name in names}
    buffers = {
        index: Buffer(name=name, shape=shapes[name], strides=contiguous(*shapes[name]))
        for index, name in enumerate(names)
    }
    facts = [
        ArrayFact(
            name=name,
            dtype=arrays[name].dtype.name,
            shape=shapes[name],
            strides=contiguous(*shapes[name]),
            alias=index,
        )
        for index, name in enumerate(names)
    ]
    launch = Specialization(grid=(*grid, 1, 1, 1)[:3], buffers=buffers)
    return emit_pallas_kernel(apart, analyze(apart, launch), facts)[1]


def run(function, arrays, *, wide=None):
    """What each array holds after the function, interpreted; others are as before."""
    import jax

    program = Program(name=function.name, source=function.source).load()
    with jax.enable_x64(function.wide if wide is None else wide):
        call = jax.jit(functools.partial(program, interpret=True))
        given = call(*(jax.numpy.asarray(arrays[name]) for name in function.parameters))
        found = (given,) if len(function.results) == 1 else given
        left = dict(zip(function.results, map(np.asarray, found), strict=True))
    return {name: left.get(name, array) for name, array in arrays.items()}


def both_ways(module, arrays, grid=(1,)):
    """What evaluator and function leave in every array, and the function."""
    names = [each.name for each in module.kernel.arguments]
    expected = evaluate(module, [arrays[name] for name in names], grid).arrays
    function = emitted(module, arrays, grid)
    return run(function, arrays), dict(zip(names, expected, strict=True)), function


@contextlib.contextmanager
def compiler():
    """Compiles for TPUs; skips the test where nothing can."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with Compiler() as found:
        yield found


def problems(process, function, arrays):
    """What the compiler says against a function, by generation; empty where it compiles."""
    program = Program(name=function.name, source=function.source, wide=function.wide)
    types = [
        ArrayType(dtype=arrays[name].dtype.name, shape=arrays[name].shape)
        for name in function.parameters
    ]
    found = process.begin(program, types, GENERATIONS, _SECONDS).result()
    return {
        generation: each.absent or each.problem
        for generation, each in zip(GENERATIONS, found, strict=True)
        if each.absent or each.problem
    }
