"""Products of tiles as products of the arrays that the tiles are cut from.

The tiles of a loop over K, and of the programs along M and N, are together the whole matrices;
then nothing has to be cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from translators.emit.emission import Emission
from translators.emit.terms import BatchAxis, Term
from translators.emit.tiles import Source, sliced
from translators.emit.tiling import Digit, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeOperand:
    """A matrix, or a stack of them, as it lies in memory.

    Attributes:
      text: the array.
      letters: what each of its dimensions is in the formula of a sum of products.
    """

    text: str
    letters: str


def whole_operands(
    e: Emission, terms: Sequence[Term], summed: BatchAxis | None, letters: dict[BatchAxis, str]
) -> tuple[WholeOperand, WholeOperand] | None:
    """The two operands of a product of matrices, uncut; `None` where they are not such tiles.

    Args:
      e: the emission.
      terms: the left operand, of shape (M, K), and the right one, of shape (K, N).
      summed: the batch axis along which the products are summed.
      letters: what batch axes are in the formula.
    """
    sources = [e.sources.get(each.text) for each in terms]
    left, right = sources
    if not isinstance(left, Source) or not isinstance(right, Source):
        return None
    if any(len(each.shape) != 2 for each in terms):
        return None
    one = _named(left, ("m", "k"), 1, summed, letters)
    other = _named(right, ("k", "n"), 0, summed, letters)
    if one is None or other is None:
        return None
    inner = [
        next(
            (span for span, letter in zip(source.spans, named, strict=True) if letter == "k"), None
        )
        for source, named in ((left, one), (right, other))
    ]
    if inner[0] is None or inner[1] is None or not _alike(inner[0], inner[1], summed is not None):
        return None
    first, second = (_operand(e, source, named) for source, named in ((left, one), (right, other)))
    return first, second


def _named(
    source: Source,
    names: tuple[str, str],
    inner: int,
    summed: BatchAxis | None,
    letters: dict[BatchAxis, str],
) -> list[str] | None:
    """The letter of each dimension; empty for one that is read at one position."""
    found: list[str] = []
    for span in source.spans:
        axes = [digit.axis for digit in span.digits]
        if any(digit.flipped or digit.unit != 1 for digit in span.digits):
            return None
        if not axes:
            found.append("")
        elif axes == [1 - inner] and span.digits[0].period == 1:
            found.append(names[1 - inner])
        elif axes == ([inner] if summed is None else [summed, inner]) and _dense(span.digits):
            found.append("k")
        elif len(axes) == 1 and isinstance(axes[0], BatchAxis) and axes[0] is not summed:
            if span.digits[0].period != 1:
                return None
            found.append(letters[axes[0]])
        else:
            return None
    given = [each for each in found if each]
    return found if len(set(given)) == len(given) and set(names) <= set(given) else None


def _dense(digits: Sequence[Digit]) -> bool:
    """Whether the digits count every position."""
    inner = digits[1].extent if len(digits) == 2 else 1
    return digits[0].period == inner and digits[-1].period == 1


def _alike(one: Span, other: Span, all_of_it: bool) -> bool:
    """Whether both go through the same positions, so that what lies outside is zero in both."""
    sizes = (one.dimension.size, other.dimension.size)
    starts = (one.start, other.start)
    return (
        sizes[0] == sizes[1]
        and starts[0] == starts[1]
        and not one.start.terms
        and one.start.offset >= 0
        and one.length == other.length
    )


def _operand(e: Emission, source: Source, named: Sequence[str]) -> WholeOperand:
    spans = tuple(
        _inside(span) if letter == "k" else span
        for span, letter in zip(source.spans, named, strict=True)
    )
    text = sliced(e, source.state, spans, 0)
    if "" in named:
        text = f"{text}[{', '.join(':' if each else '0' for each in named)}]"
    return WholeOperand(text=text, letters="".join(named))


def _inside(span: Span) -> Span:
    """What of the span lies in the array: the rest adds zeros."""
    length = min(span.length, span.dimension.size - span.start.offset)
    return replace(span, length=length)
