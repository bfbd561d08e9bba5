"""Launch cases as kernels in Pallas."""

import numpy as np
from launch_case import Memories, differ, launched

from hlo_tools.errors import InputError
from translators.translation import translate


def translated(case, blocks=None):
    """The translation to Pallas; `None` where it is refused."""
    try:
        return translate(*launched(case), "pallas", blocks or {})
    except InputError:
        return None


def left_by(case, translation, interpret=True):
    """What the memories hold after the function has run, interpreted."""
    import jax

    function = translation.function
    call = translation.load()
    with jax.enable_x64(function.wide):
        given = [np.array(case.arrays[name]) for name in function.parameters]
        found = jax.jit(lambda *arrays: call(*arrays, interpret=interpret))(*given)
    found = found if isinstance(found, tuple) else (found,)
    results = zip(function.results, found, strict=True)
    return Memories(case.arrays).after({name: np.asarray(each) for name, each in results})


def assert_same(case, translation, expected, tolerance=0.0, absolute=0.0, interpret=True):
    """The function leaves in every memory what is expected, bit for bit by default."""
    found = left_by(case, translation, interpret)
    places = Memories(case.arrays).places
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        names = ", ".join(name for name, (buffer, _) in places.items() if buffer == index)
        difference = differ(one, other, tolerance, absolute)
        assert not difference, f"{case}: {names}: {difference}\n{translation.function.source}"
