"""In which element types a TPU kernel holds the values of each element type.

What a TPU does not compute with is held in a wider type that has all its numbers:

- `f16` as `f32`, in memory too: no generation loads it (docs/pallas-capabilities.md).
- 8-bit floats as `bf16`; single numbers of any narrow float as `f32`, the only floats that the
  scalar unit computes with.
- Integers of fewer than 32 bits as `i32`, with the sign that they have as signed ones.

Memory keeps narrow integers, `bf16` and 8-bit floats as they are; truth values lie there as bytes.
"""

from translators.graph.types import (
    BF16,
    F8E4M3FNUZ,
    F8E5M2FNUZ,
    F16,
    F32,
    F64,
    I1,
    I8,
    I32,
    DescriptorType,
    ElementType,
    FloatType,
    IntType,
    PointerType,
    TensorType,
    Type,
    element_of,
    shape_of,
    with_element,
)


def is_narrow(element: ElementType | None) -> bool:
    """Whether it is held in a wider type, be it only where it is a single number."""
    if isinstance(element, IntType):
        return 1 < element.width < 32
    return isinstance(element, FloatType) and element.width < 32


def held_element(element: ElementType, *, single: bool) -> ElementType:
    """What one element is held as, in a tensor or by itself."""
    if isinstance(element, PointerType):
        return PointerType(in_memory(element.pointee))
    if not is_narrow(element):
        return element
    if isinstance(element, IntType):
        return I32
    return F32 if single or element == F16 else BF16


def in_memory(element: ElementType) -> ElementType:
    """What one element is in the arrays that the kernel sees."""
    if isinstance(element, PointerType):
        return PointerType(in_memory(element.pointee))
    if element == F16:
        return F32
    return I8 if element == I1 else element


def held_type(type_: Type) -> Type:
    """What a value of a type is held as."""
    if isinstance(type_, DescriptorType):
        block = type_.block
        return DescriptorType(TensorType(block.shape, in_memory(block.element)))
    element = element_of(type_)
    assert element is not None
    return with_element(type_, held_element(element, single=not shape_of(type_)))


def is_absent(element: ElementType | None) -> bool:
    """Whether TPU kernels have neither such numbers nor a way to read them from memory."""
    return element in (F64, F8E4M3FNUZ, F8E5M2FNUZ)
