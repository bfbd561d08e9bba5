"""Typing rules that several ops share."""

from collections.abc import Callable
from typing import TypeAlias

from translators.graph.ops.definition import Rule, RuleError, Typing
from translators.graph.types import (
    I1,
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

Kind: TypeAlias = type[IntType] | type[FloatType] | type[PointerType]

_KIND_NAMES: dict[Kind, str] = {
    IntType: "integers",
    FloatType: "floats",
    PointerType: "pointers",
}


def expect(holds: bool, message: str) -> None:
    """Raises `RuleError` with `message` unless the condition holds."""
    if not holds:
        raise RuleError(message)


def expect_count(typing: Typing, least: int, most: int | None = None) -> None:
    """Raises `RuleError` unless the op takes that many operands."""
    most = least if most is None else most
    count = len(typing.operands)
    if not least <= count <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise RuleError(f"takes {wanted} operands, not {count}")


def element(type_: Type, kind: Kind | None = None) -> ElementType:
    """The element type, which must be of that kind."""
    found = element_of(type_)
    if found is None:
        raise RuleError(f"takes no descriptor, got `{type_}`")
    if kind is not None and not isinstance(found, kind):
        raise RuleError(f"takes {_KIND_NAMES[kind]}, not `{type_}`")
    return found


def integer(type_: Type) -> IntType:
    """The element type, which must be an integer type."""
    found = element(type_)
    if not isinstance(found, IntType):
        raise RuleError(f"takes integers, not `{type_}`")
    return found


def pointee(type_: Type) -> ElementType:
    """What the pointers of a type point to."""
    found = element(type_)
    if not isinstance(found, PointerType):
        raise RuleError(f"takes pointers, not `{type_}`")
    return found.pointee


def tensor(type_: Type) -> TensorType:
    """The type, which must be a tensor type."""
    if not isinstance(type_, TensorType):
        raise RuleError(f"takes a tensor, not `{type_}`")
    return type_


def descriptor(type_: Type) -> DescriptorType:
    """The type, which must be a descriptor type."""
    if not isinstance(type_, DescriptorType):
        raise RuleError(f"takes a descriptor, not `{type_}`")
    return type_


def scalar_integer(type_: Type, what: str) -> IntType:
    """The type, which must be an integer type of rank 0."""
    if not isinstance(type_, IntType):
        raise RuleError(f"{what} must be a scalar integer, not `{type_}`")
    return type_


def same_shape(left: Type, right: Type) -> None:
    """Raises `RuleError` unless two types have one shape."""
    if shape_of(left) != shape_of(right):
        raise RuleError(f"takes operands of one shape, not `{left}` and `{right}`")


def same_type(*types: Type) -> Type:
    """The one type that all are; raises `RuleError` if they are not."""
    for other in types[1:]:
        if other != types[0]:
            raise RuleError(f"takes operands of one type, not `{types[0]}` and `{other}`")
    return types[0]


def wanted(typing: Typing, count: int = 1) -> tuple[Type, ...]:
    """The result types, which cannot be told from the operands."""
    if typing.wanted is None or len(typing.wanted) != count:
        given = "none" if not typing.wanted else len(typing.wanted)
        raise RuleError(f"needs {count} result types, {given} given")
    return typing.wanted


def uniform(count: int, kind: Kind) -> Rule:
    """`count` operands of one type, whose elements are of `kind`, give that type."""

    def rule(typing: Typing) -> tuple[Type, ...]:
        expect_count(typing, count)
        element(typing.operands[0], kind)
        return (same_type(*typing.operands),)

    return rule


def predicate(count: int, kind: Kind) -> Rule:
    """`count` operands of one type, whose elements are of `kind`, give `i1` of that shape."""

    def rule(typing: Typing) -> tuple[Type, ...]:
        (operand,) = uniform(count, kind)(typing)
        return (with_element(operand, I1),)

    return rule


def cast(allowed: Callable[[ElementType, ElementType], str | None]) -> Rule:
    """One operand gives the wanted type of the same shape.

    Args:
      allowed: says of two element types what is wrong, as a clause; `None` if nothing.
    """

    def rule(typing: Typing) -> tuple[Type, ...]:
        expect_count(typing, 1)
        (result,) = wanted(typing)
        (operand,) = typing.operands
        same_shape(operand, result)
        problem = allowed(element(operand), element(result))
        if problem is not None:
            raise RuleError(f"{problem}, got `{operand}` to `{result}`")
        return (result,)

    return rule


def nothing(least: int, most: int | None = None) -> Rule:
    """Between `least` and `most` operands of any type give no result."""

    def rule(typing: Typing) -> tuple[Type, ...]:
        expect_count(typing, least, most)
        return ()

    return rule
