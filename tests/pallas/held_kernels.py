"""Kernels of one op on arrays of any element types."""

import numpy as np
from kernel_builder import Kernel

from translators.emit.pallas.elements.held_types import in_memory
from translators.emit.pallas.elements.holding import held
from translators.graph.evaluator import evaluate
from translators.graph.numerics import dtype_of
from translators.graph.types import PointerType, TensorType, element_of, with_element
from translators.graph.verifier import verify


def kernel_of(name, operands, result, count, **attributes):
    """A kernel that applies an op to all elements of arrays, and stores what it gives."""
    arguments = {f"x{index}": PointerType(each) for index, each in enumerate(operands)}
    k = Kernel(**arguments, out=PointerType(result))
    lanes = k.arange(count)
    values = [k.load(k.point(k[each], lanes)) for each in arguments]
    made = k.builder.op(name, *values, results=(TensorType((count,), result),), **attributes)
    k.store(k.point(k["out"], lanes), made.result)
    return k.done()


def as_held(array, element):
    """An array as the kernel with held values sees it."""
    return array.astype(dtype_of(in_memory(element)))


def as_given(array, element):
    """An array of such a kernel as the caller has it."""
    return array.astype(dtype_of(element))


def both_ways(module, arrays, grid=(1,)):
    """What a kernel and the kernel with held values leave in its arrays."""
    verify(module)
    elements = [element_of(each.type).pointee for each in module.kernel.arguments]
    expected = evaluate(module, arrays, grid).arrays
    other = held(module)
    verify(other)
    found = evaluate(other, [as_held(*each) for each in zip(arrays, elements, strict=True)], grid)
    return [as_given(*each) for each in zip(found.arrays, elements, strict=True)], expected


__all__ = ["both_ways", "kernel_of", "np", "with_element"]
