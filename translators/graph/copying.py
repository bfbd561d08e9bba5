"""Copies of regions, op by op, in which a subclass changes what it wants changed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from translators.graph.graph import Module, Op, Region, Value, make_module, make_op, make_region
from translators.graph.types import Type


class Copier:
    """Copies as it is.

    Attributes:
      values: what has become of each value.
    """

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}

    def copies(self, op: Op, region: Region) -> bool:
        """Whether to copy an op; called before it is, and may write to the region."""
        return True

    def type_of(self, value: Value) -> Type:
        """The type of what becomes of a value."""
        return value.type

    def operand(self, value: Value, region: Region) -> Value:
        """What an op that is copied to the region takes for a value."""
        return self.values[value]

    def append(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Region], region: Region
    ) -> Op:
        """Copies an op with these operands and regions."""
        made = make_op(
            op.name,
            operands,
            [self.type_of(each) for each in op.results],
            attributes=op.attributes,
            regions=regions,
            location=op.location,
            result_names=[each.name for each in op.results],
        )
        region.ops.append(made)
        return made

    def copied(self, op: Op, regions: Sequence[Region], region: Region) -> Sequence[Value]:
        """Copies an op, of which the regions are copied; gives what its results have become."""
        operands = [self.operand(each, region) for each in op.operands]
        return self.append(op, operands, regions, region).results

    def opened(self, inner: Region) -> Region:
        """The region in which a copy of another one is to be, with its arguments."""
        copied = make_region(
            [self.type_of(each) for each in inner.arguments],
            [each.name for each in inner.arguments],
        )
        self.values.update(zip(inner.arguments, copied.arguments, strict=True))
        return copied

    def copy(self, source: Region, target: Region) -> None:
        """Appends copies of the ops of `source`, and of all inside them, to `target`."""
        # An op with regions waits until these are copied.
        stack: list[tuple[Iterator[Op], Region]] = [(iter(source.ops), target)]
        waiting: list[tuple[Op, list[Region]]] = []
        while stack:
            ops, region = stack[-1]
            op = next(ops, None)
            if op is None:
                stack.pop()
                if waiting and len(waiting[-1][1]) < len(waiting[-1][0].regions):
                    self._enter(*waiting[-1], stack)
                elif waiting:
                    self._make(*waiting.pop(), stack[-1][1])
            elif not self.copies(op, region):
                continue
            elif op.regions:
                waiting.append((op, []))
                self._enter(*waiting[-1], stack)
            else:
                self._make(op, [], region)

    def _enter(
        self, op: Op, regions: list[Region], stack: list[tuple[Iterator[Op], Region]]
    ) -> None:
        inner = op.regions[len(regions)]
        regions.append(self.opened(inner))
        stack.append((iter(inner.ops), regions[-1]))

    def _make(self, op: Op, regions: list[Region], region: Region) -> None:
        for old, new in zip(op.results, self.copied(op, regions, region), strict=True):
            self.values.setdefault(old, new)


def copied_kernel(module: Module, copier: Copier) -> Module:
    """The module with the copy that a copier makes of its kernel, which takes the same arguments.

    It is not verified.
    """
    kernel = module.kernel
    body = copier.opened(kernel.body)
    copier.copy(kernel.body, body)
    others = [each for each in module.functions.values() if each is not kernel]
    return make_module([replace(kernel, body=body), *others], kernel.name)
