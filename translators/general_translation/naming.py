"""Lengths of blocks by name, so that blocks are no longer than the dimension that they divide."""

import re

from translators.emit.general.blocks import following
from translators.emit.general.formula import Formula, Sizes, number
from translators.emit.general.template import Number
from translators.general_translation.block_lengths import Blocked
from translators.general_translation.fitted import Fitted
from translators.general_translation.resized import AnotherTextError, RefusedError, template
from translators.resize.choosing import LARGEST

# Launches with other lengths of blocks, to see which numbers follow those.
_SEEN = 2


def name_blocks(fitted: Fitted, blocked: Blocked) -> None:
    """Names the lengths of blocks that numbers of the text follow, and sets what they are at most.

    Args:
      fitted: a function that was fitted to launches with blocks of `blocked.short`; from here on
        it is compared with launches with those of `blocked.long`.
      blocked: the lengths.

    Raises:
      AnotherTextError: with long blocks the text is another one.
    """
    for name, length in blocked.short.blocks.items():
        known = length == LARGEST or _name(fitted, name, length)
        if not known and length != blocked.long.blocks[name]:
            raise AnotherTextError(f"with other blocks along `{name}` the text is another one")
    if blocked.short != blocked.long:
        fitted.with_lengths(blocked.long)
        longest = {_symbol(name): length for name, length in blocked.long.blocks.items()}
        fitted.named = {
            symbol: (longest[symbol], whole) for symbol, (_, whole) in fitted.named.items()
        }
        if not fitted.same_text(fitted.sizes()[0]):
            raise AnotherTextError("with longer blocks the text is another one")


def _symbol(name: str) -> str:
    """What the text calls the length of blocks along a dimension."""
    return re.sub(r"\W", "_", f"block_{name}")


def _name(fitted: Fitted, name: str, length: int) -> bool:
    """Names a length; gives whether it is known which numbers follow it."""
    whole = fitted.wholes.get(name)
    if whole is None:
        return False
    symbol = _symbol(name)
    seen: list[tuple[Sizes, tuple[Number, ...]]] = []
    for other in (length * 2, length // 2, length * 4, length // 4):
        sizes = fitted.launches[len(seen)]
        changed = fitted.resized.with_blocks({**fitted.resized.blocks, name: other})
        try:
            found = template(changed.translated(sizes).function)
        except RefusedError:
            continue
        if found.key == fitted.template.key:
            known = {**fitted.known(sizes), symbol: other}
            seen.append((known, found.numbers))
        if len(seen) == _SEEN:
            break
    else:
        return False
    written: list[Formula | Number] = []
    for place, before in enumerate(fitted.written):
        values = [(sizes, numbers[place]) for sizes, numbers in seen]
        after = _followed(before, length, symbol, values)
        if after is None:
            return False
        written.append(after)
    fitted.written = written
    fitted.named[symbol] = (length, whole)
    return True


def _followed(
    before: Formula | Number, length: int, symbol: str, values: list[tuple[Sizes, Number]]
) -> Formula | Number | None:
    """What a number follows if a length has a name; `None` if that is not known."""
    if not isinstance(before, Formula):
        if all(value == before for _, value in values):
            return before
        if not isinstance(before, int):
            return None
        before = number(before)
    integers = [(sizes, int(value)) for sizes, value in values if float(value).is_integer()]
    if len(integers) < len(values):
        return None
    return following(before, length, symbol, integers)
