"""Constants, ranges and what is broadcast, with a value of their own for each use.

Triton's front end makes one value of all that are equal, so that a range of rows and a range of
columns are one where their blocks are equally long. What is true of one of them is then not true
of the value; here they are apart again.
"""

from collections.abc import Iterator
from dataclasses import replace

from translators.graph.graph import Module, Op, Region, Value, make_module, make_op, make_region
from translators.graph.types import TensorType

# What is cheap to make again: it gives a tensor dimensions that say nothing of where it came from.
_SOURCES = frozenset(("arith.constant", "tt.make_range", "tt.splat", "tt.broadcast"))
# What may stand between a source and its use.
_PURE = frozenset(("tt.expand_dims", "arith.extsi", "arith.extui"))


def unshared(module: Module) -> Module:
    """The module with the closed tensors of its kernel made anew for each use."""
    kernel = module.kernel
    body = make_region(
        [each.type for each in kernel.arguments], [each.name for each in kernel.arguments]
    )
    copier = _Copier()
    copier.values.update(zip(kernel.arguments, body.arguments, strict=True))
    copier.copy(kernel.body, body)
    copied = replace(kernel, body=body)
    others = [each for each in module.functions.values() if each is not kernel]
    return make_module([copied, *others], kernel.name)


class _Copier:
    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        self._closed: set[Value] = set()

    def copy(self, source: Region, target: Region) -> None:
        stack: list[tuple[Iterator[Op], Region]] = [(iter(source.ops), target)]
        waiting: list[tuple[Op, list[Region]]] = []
        while stack:
            ops, region = stack[-1]
            op = next(ops, None)
            if op is not None:
                self._note(op)
                if op.regions:
                    waiting.append((op, []))
                    self._enter(waiting[-1], stack)
                else:
                    self._make(op, [], region)
                continue
            stack.pop()
            if waiting and len(waiting[-1][1]) < len(waiting[-1][0].regions):
                self._enter(waiting[-1], stack)
            elif waiting:
                done, regions = waiting.pop()
                self._make(done, regions, stack[-1][1])

    def _enter(
        self, entry: tuple[Op, list[Region]], stack: list[tuple[Iterator[Op], Region]]
    ) -> None:
        op, regions = entry
        inner = op.regions[len(regions)]
        copied = make_region(
            [each.type for each in inner.arguments], [each.name for each in inner.arguments]
        )
        self.values.update(zip(inner.arguments, copied.arguments, strict=True))
        regions.append(copied)
        stack.append((iter(inner.ops), copied))

    def _note(self, op: Op) -> None:
        """Takes down whether the op gives a closed tensor."""
        tensor = any(isinstance(each.type, TensorType) for each in op.results)
        closed = op.name in _SOURCES or (
            op.name in _PURE and all(each in self._closed for each in op.operands)
        )
        if tensor and closed:
            self._closed.update(op.results)

    def _make(self, op: Op, regions: list[Region], region: Region) -> None:
        operands = [
            self._anew(each, region) if each in self._closed else self.values[each]
            for each in op.operands
        ]
        self._append(op, operands, regions, region)

    def _append(self, op: Op, operands: list[Value], regions: list[Region], region: Region) -> Op:
        made = make_op(
            op.name,
            operands,
            [each.type for each in op.results],
            attributes=op.attributes,
            regions=regions,
            location=op.location,
            result_names=[each.name for each in op.results],
        )
        region.ops.append(made)
        self.values.update(zip(op.results, made.results, strict=True))
        return made

    def _anew(self, value: Value, region: Region) -> Value:
        """Makes a closed tensor again, from its sources on."""
        chain: list[Op] = []
        while True:
            owner = value.owner
            assert isinstance(owner, Op)
            chain.append(owner)
            if not owner.operands or owner.operands[0] not in self._closed:
                break
            (value,) = owner.operands
        made: list[Value] = [self.values[each] for each in chain[-1].operands]
        kept = dict(self.values)
        for op in reversed(chain):
            made = list(self._append(op, made, [], region).results)
        self.values = kept
        return made[0]
