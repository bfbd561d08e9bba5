"""Arrays in the form that windows are cut from, and back."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A form of an array: dimensions padded, taken apart, put in order, and seen with others of 1.

    Attributes:
      sizes: the dimensions of the array.
      parts: for each of them what it is taken apart into; together as many positions or more.
      order: which of the parts each dimension is, before those of 1 are put in.
      shape: the form.
    """

    sizes: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def _whole(self) -> tuple[int, ...]:
        return tuple(prod(each) for each in self.parts)

    @property
    def _apart(self) -> tuple[int, ...]:
        return tuple(size for each in self.parts for size in each)

    @property
    def _ordered(self) -> tuple[int, ...]:
        return tuple(self._apart[place] for place in self.order)

    def formed(self, text: str) -> str:
        """The array in this form."""
        if self._whole != self.sizes:
            pads = ", ".join(
                f"(0, {to - size})" for size, to in zip(self.sizes, self._whole, strict=True)
            )
            text = f"jnp.pad({text}, ({pads}{',' if len(self.sizes) == 1 else ''}))"
        shape = self._whole
        if self.order != tuple(range(len(self.order))):
            text = _reshaped(text, shape, self._apart)
            text = f"{text}.transpose({', '.join(map(str, self.order))})"
            shape = self._ordered
        return _reshaped(text, shape, self.shape)

    def restored(self, text: str) -> str:
        """The array of this form as it was."""
        shape = self.shape
        if self.order != tuple(range(len(self.order))):
            text = _reshaped(text, shape, self._ordered)
            back = [self.order.index(place) for place in range(len(self.order))]
            text = f"{text}.transpose({', '.join(map(str, back))})"
            shape = self._apart
        text = _reshaped(text, shape, self._whole)
        if self._whole != self.sizes:
            ends = ", ".join(
                ":" if to == size else f":{size}"
                for size, to in zip(self.sizes, self._whole, strict=True)
            )
            text = f"{text}[{ends}]"
        return text


def joined(text: str) -> str:
    """An expression with one change of shape in the place of two, one after the other."""
    return ast.unparse(_Joiner().visit(ast.parse(text, mode="eval")))


class _Joiner(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A change of shape of what was given another shape before."""
        self.generic_visit(node)
        while _is_reshape(node) and _is_reshape(inner := node.func.value):  # type: ignore[attr-defined]
            node.func.value = inner.func.value  # type: ignore[attr-defined]
        return node


def _is_reshape(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "reshape"
    )


def _reshaped(text: str, before: Sequence[int], after: Sequence[int]) -> str:
    if tuple(before) == tuple(after):
        return text
    return f"{text}.reshape({', '.join(map(str, after))})"
