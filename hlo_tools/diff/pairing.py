"""Which module of one set of dumps is which of another."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from hlo_tools.diff.compare import ReadModule

_NUMBER = re.compile(r"(?:\.\d+)+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The modules that both sides have, in the new one's order, and those of one side alone."""

    pairs: tuple[tuple[ReadModule, ReadModule], ...]
    only_old: tuple[ReadModule, ...]
    only_new: tuple[ReadModule, ...]


def pair_modules(old: Sequence[ReadModule], new: Sequence[ReadModule]) -> Pairing:
    """Pairs modules by name and signature, then by name, then by signature, each in order.

    One module on each side is one pair, whatever it is called.
    """
    partners: dict[int, int] = {}
    if len(old) == len(new) == 1:
        partners[0] = 0
    for likeness in (_name_and_signature, _name, _signature):
        _pair(old, new, likeness, partners)
    taken = set(partners.values())
    return Pairing(
        pairs=tuple((old[partners[n]], new[n]) for n in sorted(partners)),
        only_old=tuple(module for n, module in enumerate(old) if n not in taken),
        only_new=tuple(module for n, module in enumerate(new) if n not in partners),
    )


def _pair(
    old: Sequence[ReadModule],
    new: Sequence[ReadModule],
    likeness: Callable[[ReadModule], Hashable],
    partners: dict[int, int],
) -> None:
    """Adds to `partners` (new to old) what is alike and not paired yet."""
    taken = set(partners.values())
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number, module in enumerate(old):
        if number not in taken and (key := likeness(module)) is not None:
            waiting[key].append(number)
    for number, module in enumerate(new):
        if number not in partners and (found := waiting.get(likeness(module))):
            partners[number] = found.pop(0)


def _name(module: ReadModule) -> Hashable:
    """The name without the numbers that are appended to make it unique."""
    return _NUMBER.sub("", module.module.name)


def _signature(module: ReadModule) -> Hashable:
    """The types of arguments and results, with layouts; `None` where the text does not say."""
    return module.module.attribute("entry_computation_layout")


def _name_and_signature(module: ReadModule) -> Hashable:
    signature = _signature(module)
    return None if signature is None else (_name(module), signature)
