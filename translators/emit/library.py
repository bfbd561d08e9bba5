"""Functions of Triton's library that say by name what their bodies say in bit arithmetic.

The names are mangled: types of the arguments, then constants, each behind `_c`
(`triton.language.standard.sort_impl__fp32S16S_cNone_cNone_cTrue`).
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from translators.emit.emission import Emission
from translators.emit.terms import Term, common_batch, common_dims, dtype, typed, unsigned
from translators.graph.graph import Op
from translators.graph.types import I1, I32, I64, IntType, shape_of

_NAME = re.compile(r"triton\.language\.([\w.]+?)__(.*)")


def library_call(e: Emission, op: Op) -> bool:
    """Emits a call of a function that is known by name; gives whether it is one."""
    found = _NAME.fullmatch(op.text("callee"))
    if found is None or found[1] not in _FUNCTIONS:
        return False
    types, *constants = found[2].split("_c")
    return _FUNCTIONS[found[1]](e, op, types, constants)


def _sort(e: Emission, op: Op, types: str, constants: list[str]) -> bool:
    """Along the last dimension, whole or the first of it."""
    _, _, descending = constants
    term = e.spread(e.term(op.operands[0]))
    if term.element == I1:
        return False
    text = term.text
    if types.startswith("u"):
        text = f"{text}.astype({unsigned(term.element)})"
    falls = descending not in ("False", "0")
    text = f"{e.function('jnp.sort')}({text}, axis=-1{', descending=True' if falls else ''})"
    shape = shape_of(op.result.type)
    if shape[-1] != term.shape[-1]:
        text = f"{text}[..., :{shape[-1]}]"
    if types.startswith("u"):
        text = f"{text}.astype({dtype(term.element)})"
    e.put(op.result, e.bind(text, term, op.result.name, shape=shape))
    return True


def _flip(e: Emission, op: Op, types: str, constants: list[str]) -> bool:
    (along,) = constants
    term = e.spread(e.term(op.operands[0]))
    rank = len(term.shape)
    axis = -1 if along == "None" else int(along) % rank - rank
    text = f"{e.function('jnp.flip')}({term.text}, axis={axis})"
    e.put(op.result, e.bind(text, term, op.result.name))
    return True


def _philox(e: Emission, op: Op, types: str, constants: list[str]) -> bool:
    """Random bits for a seed, or its two halves, and a counter of four words."""
    terms = [e.term(each) for each in op.operands]
    seed, words = terms[:-4], terms[-4:]
    if any(each.element != I32 for each in words):
        return False
    helper = e.writer.helper("_philox")
    if len(seed) == 1:
        low, high = _halves(e, seed[0], signed=types.startswith("i"))
    else:  # two halves already
        low, high = (_word(each) for each in seed)
    parts = ", ".join(_word(each) for each in words)
    text = f"{helper}({low}, {high}, {parts}, {int(constants[0])})"
    names = e.writer.unpack(text, [each.name for each in op.results])
    shape = shape_of(op.results[0].type)
    shaped = [each for each in words if each.shape == shape]
    for name, result in zip(names, op.results, strict=True):
        made = Term(
            text=f"{name}",
            element=I32,
            shape=shape,
            dims=common_dims(shaped),
            batch=common_batch(terms),
        )
        e.put(result, made.like(e.writer.assign(f"{name}.astype(jnp.int32)", result.name)))
    return True


def _halves(e: Emission, seed: Term, *, signed: bool) -> tuple[str, str]:
    """The lower and the upper word of the seed, as unsigned."""
    if seed.number is not None:
        bits = int(seed.number)
        if not signed:
            assert isinstance(seed.element, IntType)
            bits %= 1 << seed.element.width
        return f"jnp.uint32({bits % (1 << 32)})", f"jnp.uint32({(bits >> 32) % (1 << 32)})"
    low = f"{seed.text}.astype(jnp.uint32)"
    if seed.element == I64:
        return low, f"({seed.text} >> 32).astype(jnp.uint32)"
    if not signed:
        return low, "jnp.uint32(0)"
    return low, f"({seed.text} >> 31).astype(jnp.uint32)"


def _word(term: Term) -> str:
    if term.number is not None:
        return f"jnp.uint32({int(term.number) % (1 << 32)})"
    return f"{typed(term)}.astype(jnp.uint32)"


_FUNCTIONS: Mapping[str, Callable[[Emission, Op, str, list[str]], bool]] = MappingProxyType(
    {"standard.sort_impl": _sort, "standard.flip": _flip, "random.philox": _philox}
)
