"""How arrays and numbers reach the kernel: as elements that TPUs have, and back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from translators.emit.buffers import Buffers, BufferState
from translators.emit.facts import ArrayFact, ScalarFact
from translators.emit.terms import dtype, dtype_name
from translators.emit.writer import Writer
from translators.graph.types import F32, ElementType

IN_WORDS = (
    "integers of 64 bits go in and out as two halves; where JAX has no such types, those of 32 "
    "bits stand for them, and of larger ones nothing is left but the lower half"
)
OF_FLOAT16 = (
    "`float16` is `float32` in the kernel, converted before and after it, and rounded where Triton "
    "rounds; a product of matrices takes four of `bfloat16`"
)


@dataclass(slots=True)
class Carriers(Buffers):
    """The arrays, converted around the call where TPUs have no such elements."""

    def add(self, index: int, fact: ArrayFact, element: ElementType) -> None:
        """Takes an array up; the upper words of one are of what the caller gives for the lower."""
        if not fact.word:
            Buffers.add(self, index, fact, element)
            return
        given = next(each.name for each in self.states.values() if each.fact.name == fact.name)
        self.states[index] = BufferState(fact, element, given)

    @property
    def in_words(self) -> bool:
        """Whether the caller gives, or gets, integers of 64 bits."""
        return any(each.fact.word is not None for each in self.states.values())

    @property
    def of_float16(self) -> bool:
        """Whether the caller gives, or gets, numbers of `float16`."""
        return any(each.fact.dtype == "float16" for each in self.states.values())

    def entered(self, state: BufferState) -> str:
        """An expression for what the caller gave, as the kernel sees it; empty if it is that."""
        if state.fact.word == 0:
            return f"{state.name}.astype(jnp.int32)"
        if state.fact.word == 1:
            return f"{self.writer.helper('_upper_words')}({state.name})"
        if state.fact.dtype == "float16" and state.element == F32:
            return f"{state.name}.astype(jnp.float32)"
        return Buffers.entered(self, state)

    def results(self, written: Iterable[int]) -> Mapping[str, str]:
        """What the caller gets: names of arrays, each with an expression."""
        states = [self.states[key] for key in written]
        upper = {each.fact.name: each.name for each in states if each.fact.word == 1}
        found: dict[str, str] = {}
        for state in states:
            fact = state.fact
            if fact.word is None:
                found[fact.name] = self._left(state)
            elif fact.word == 0:
                helper = self.writer.helper("_joined_words")
                words = f"{state.name}, {upper[fact.name]}"
                found[fact.name] = f"{helper}({words}, jnp.{fact.dtype})"
        return found

    def _left(self, state: BufferState) -> str:
        if state.fact.dtype == "float16" and state.element == F32:
            return f"{state.name}.astype(jnp.float16)"
        return self.left(state)


def array_of(writer: Writer, name: str, fact: ScalarFact, element: ElementType) -> str:
    """An array of one number, as the kernel sees it.

    Args:
      writer: the text.
      name: what the caller gave.
      fact: what the launch says of it.
      element: what the kernel holds it as.
    """
    if fact.word is not None:
        writer.helper("_upper_words")
        return f"{writer.helper('_word')}({name}, {fact.word})"
    text = f"jnp.array([{name}], jnp.{fact.dtype})"
    if fact.dtype == dtype_name(element):
        return text
    signed = fact.dtype.removeprefix("u")
    if signed != fact.dtype:
        text = f"{text}.astype(jnp.{signed})"
    return text if signed == dtype_name(element) else f"{text}.astype({dtype(element)})"


# Functions that an emitted file brings along where integers of 64 bits go in or out. By default
# JAX has none: then those of 32 bits stand for them.
HELPERS: Mapping[str, str] = MappingProxyType(
    {
        "_upper_words": '''
def _upper_words(x):
    """The upper halves that integers have, or would have, in 64 bits."""
    if x.dtype.itemsize == 8:
        return (x >> 32).astype(jnp.int32)
    return jnp.where(x < 0, -1, 0).astype(jnp.int32)
''',
        "_joined_words": '''
def _joined_words(low, high, dtype):
    """Integers of 64 bits from their halves; of 32, the lower ones, where JAX has no others."""
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype.itemsize == 4:
        return low.astype(dtype)
    return (high.astype(dtype) << 32) | low.astype(jnp.uint32).astype(dtype)
''',
        "_word": '''
def _word(number, which):
    """A half of an integer of 64 bits, 0 the lower one, as an array of one."""
    if isinstance(number, jax.Array):
        low = number.astype(jnp.int32).reshape(1)
        return _upper_words(number).reshape(1) if which else low
    half = int(number) >> (32 * which) & 0xFFFFFFFF
    return jnp.array([half], jnp.uint32).astype(jnp.int32)
''',
        "_without_x64": '''
def _without_x64(call, *arrays):
    """Calls a kernel where types of 64 bits are off, which TPUs have not."""
    with jax.enable_x64(False):
        return call(*arrays)
''',
    }
)
