"""Running an emitted function and the evaluator on the same memory."""

import numpy as np

from translators.access.analysis import analyze
from translators.access.launch import Buffer, Specialization
from translators.emit.facts import ArrayFact
from translators.emit.kernel import emit_kernel
from translators.emit.unsharing import unshared
from translators.graph.evaluator import evaluate
from translators.graph.verifier import verify


def emitted(module, arrays, grid):
    """The function for a kernel whose arguments are row-major arrays."""
    verify(module)
    apart = unshared(module)
    names = [each.name for each in module.kernel.arguments]
    strides = {
        name: tuple(step // array.itemsize for step in array.strides)
        for name, array in arrays.items()
    }
    buffers = {
        index: Buffer(name=name, shape=arrays[name].shape, strides=strides[name])
        for index, name in enumerate(names)
    }
    facts = [
        ArrayFact(
            name=name,
            dtype=arrays[name].dtype.name,
            shape=arrays[name].shape,
            strides=strides[name],
            alias=index,
        )
        for index, name in enumerate(names)
    ]
    analysis = analyze(apart, Specialization(grid=(*grid, 1, 1, 1)[:3], buffers=buffers))
    return emit_kernel(apart, analysis, facts)


def run(function, arrays):
    """What each array holds after the function; those that it does not give are as before."""
    import jax

    namespace = {}
    exec(compile(function.source, "<emitted>", "exec"), namespace)
    found = jax.jit(namespace[function.name])(*(arrays[name] for name in function.parameters))
    results = (found,) if len(function.results) == 1 else found
    given = dict(zip(function.results, map(np.asarray, results), strict=True))
    return {name: given.get(name, array) for name, array in arrays.items()}


def agrees(module, arrays, grid):
    """Whether function and evaluator leave the same in every array; gives the function."""
    analysis, function = emitted(module, arrays, grid)
    names = [each.name for each in module.kernel.arguments]
    expected = evaluate(module, [arrays[name] for name in names], (*grid, 1, 1)[:3]).arrays
    found = run(function, arrays)
    for name, array in zip(names, expected, strict=True):
        np.testing.assert_array_equal(found[name], array, f"{name}\n{function.source}")
    return analysis, function
