"""Types, attributes and locations of jaxlib's MLIR as those of the op graph."""

import linecache
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from translators.graph.graph import AttributeValue
from translators.graph.location import SourceLocation
from translators.graph.types import (
    FLOAT_TYPES,
    DescriptorType,
    ElementType,
    IntType,
    PointerType,
    TensorType,
    Type,
    element_of,
)

# How MLIR numbers the keywords of an enumeration: `mlir/Dialect/Arith/IR/ArithBase.td` and
# `triton/Dialect/Triton/IR/TritonAttrDefs.td`. Each is held against jaxlib's parser in the tests.
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_ORDERED_PREDICATES = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord")
_UNORDERED_PREDICATES = ("ueq", "ugt", "uge", "ult", "ule", "une", "uno")
_FLOAT_PREDICATES = ("false", *_ORDERED_PREDICATES, *_UNORDERED_PREDICATES, "true")
_UPDATES = ("and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_SCALED_FORMATS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16")
_ORDERINGS = ("relaxed", "acquire", "release", "acq_rel")
# An empty op stands for every op.
KEYWORDS: Mapping[tuple[str, str], Mapping[int, str]] = MappingProxyType(
    {
        ("arith.cmpi", "predicate"): dict(enumerate(_INTEGER_PREDICATES)),
        ("arith.cmpf", "predicate"): dict(enumerate(_FLOAT_PREDICATES)),
        ("tt.atomic_rmw", "atomic_rmw_op"): dict(enumerate(_UPDATES, 1)),
        ("tt.descriptor_reduce", "kind"): dict(enumerate(_REDUCTIONS, 1)),
        ("", "sem"): dict(enumerate(_ORDERINGS, 1)),
        ("", "scope"): dict(enumerate(("gpu", "cta", "sys"), 1)),
        ("", "inputPrecision"): dict(enumerate(("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"))),
        ("", "rounding"): {0: "rtz", 1: "rtne"},
        ("", "propagateNan"): {0: "none", 0xFFFF: "all"},
        ("", "padding"): {1: "zero", 2: "nan"},
        ("", "a_elem_type"): dict(enumerate(_SCALED_FORMATS)),
        ("", "b_elem_type"): dict(enumerate(_SCALED_FORMATS)),
    }
)

_LIBRARY = "/triton/language/"
# What MLIR calls the text that it was given to parse.
_PARSED = "-"
_FRAME = re.compile(
    r'(?:"(?P<name>(?:[^"\\]|\\.)*)"\()?"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):(?P<column>\d+)'
)
_POINTER = re.compile(r"!tt\.ptr<(.*?)(?:, \d+)?>")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)(.+)>")
_DESCRIPTOR = re.compile(r"!tt\.tensordesc<((?:\d+x)+)([^,]+)>")
_INTEGER = re.compile(r"[su]?i(\d+)")


class UnknownTypeError(ValueError):
    """A type of MLIR that the graph has none for; the message is a clause."""


class UnknownAttributeError(ValueError):
    """An attribute of MLIR that the graph has no value for; the message is a clause."""


@lru_cache(maxsize=4096)
def type_of(text: str) -> Type:
    """The graph's type for a type as MLIR prints it.

    Raises:
      UnknownTypeError: the graph has no such type.
    """
    tensor = _TENSOR.fullmatch(text)
    if tensor:
        return TensorType(_sizes(tensor[1]), _element(tensor[2]))
    descriptor = _DESCRIPTOR.fullmatch(text)
    if descriptor:
        return DescriptorType(TensorType(_sizes(descriptor[1]), _element(descriptor[2])))
    return _element(text)


def _element(text: str) -> ElementType:
    depth = 0
    while pointer := _POINTER.fullmatch(text):
        text = pointer[1]
        depth += 1
    integer = _INTEGER.fullmatch(text)
    element: ElementType | None = IntType(int(integer[1])) if integer else FLOAT_TYPES.get(text)
    if element is None:
        raise UnknownTypeError(f"the type `{text}` is not supported")
    for _ in range(depth):
        element = PointerType(element)
    return element


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x") if size)


def attribute_of(op: str, name: str, attribute: Any) -> AttributeValue | None:
    """The graph's value for an attribute; `None` for one that says nothing.

    Args:
      op: the op's name.
      name: the attribute's name.
      attribute: the attribute in jaxlib's MLIR.

    Raises:
      UnknownAttributeError: the graph has no such value.
    """
    from jaxlib.mlir import ir

    if isinstance(attribute, ir.BoolAttr | ir.StringAttr | ir.FlatSymbolRefAttr | ir.FloatAttr):
        return attribute.value  # type: ignore[no-any-return]  # jaxlib is not followed
    if isinstance(attribute, ir.UnitAttr):
        return True
    if isinstance(attribute, ir.IntegerAttr):
        keywords = KEYWORDS.get((op, name)) or KEYWORDS.get(("", name))
        if keywords is None:
            return int(attribute.value)
        if int(attribute.value) not in keywords:
            raise UnknownAttributeError(f"`{name}` has the unknown value {attribute.value}")
        return keywords[int(attribute.value)]
    if isinstance(attribute, ir.DenseI32ArrayAttr | ir.DenseI64ArrayAttr):
        return tuple(int(each) for each in attribute)
    text = str(attribute)
    if text.startswith(("#arith.", "#tt.")):
        keyword = text.partition("<")[2].rstrip(">")
        return keyword if keyword and keyword != "none" else None
    raise UnknownAttributeError(f"`{name}` is `{text}`, which is not supported")


def constant_of(type_: Type, attribute: Any) -> AttributeValue:
    """The value of `arith.constant`: one number for a scalar or a splat, else one an element.

    Raises:
      UnknownAttributeError: the elements cannot be read.
    """
    from jaxlib.mlir import ir

    element = element_of(type_)

    def number(value: Any) -> int | float:
        return element.wrap(int(value)) if isinstance(element, IntType) else float(value)

    if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr | ir.FloatAttr):
        return number(attribute.value)
    if isinstance(attribute, ir.DenseElementsAttr):
        if attribute.is_splat:
            return number(attribute.get_splat_value().value)
        if isinstance(attribute, ir.DenseIntElementsAttr | ir.DenseFPElementsAttr):
            return tuple(number(each) for each in attribute)
    raise UnknownAttributeError(f"the constant `{attribute}` is not supported")


@lru_cache(maxsize=65536)
def location_of(text: str, path: str | None = None) -> tuple[SourceLocation | None, str]:
    """The place in the kernel's own source that MLIR prints so, and the variable assigned there.

    Of the calls that lead to an op, the innermost outside Triton's library is the person's own.

    Args:
      text: the location as MLIR prints it.
      path: the file that the Triton IR itself stands in, where that is known. An op without a
        location of its own is there.
    """
    frames = list(_FRAME.finditer(text))
    if not frames:
        return None, ""
    own = next((frame for frame in frames if _LIBRARY not in frame["file"]), frames[0])
    file, line = own["file"].replace('\\"', '"').replace("\\\\", "\\"), int(own["line"])
    if file == _PARSED and path is not None:
        file = path
    location = SourceLocation(
        file=file,
        line=line,
        column=int(own["column"]),
        text=linecache.getline(file, line).strip(),
    )
    return location, own["name"] or ""
