import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import COMMON, OURS, launched, matmul, vector_add

from translators.triton.binding import Memories, bind, describe
from translators.triton.host_arrays import HostArray
from translators.triton.kernel_graph import kernel_graph
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_argument
from translators.triton.launches import (
    ConstantArgument,
    TypeConstant,
)
from translators.triton.loading import load_file
from translators.verify.evaluation import Case, Clock, run
from translators.verify.interpreter import Interpreter, NoOracleError
from translators.verify.memory import lay_out
from translators.verify.sibling import sibling_case, sibling_launch
from translators.verify.unsuited import unsuited

BLOCKS = ["BLOCK=16"]


@pytest.fixture(scope="module")
def interpreter():
    with Interpreter() as started:
        yield started


def case_of(layout):
    rng = np.random.default_rng(1)
    return Case(
        title="",
        storages={
            buffer: rng.integers(-9, 9, storage.size).astype(storage.dtype)
            for buffer, storage in layout.storages.items()
        },
    )


def both(interpreter, launch_of):
    """What interpreter and evaluator leave, and what was there before."""
    kernel, launch = launch_of
    layout = lay_out(launch)
    case = case_of(layout)
    interpreted = interpreter.run(kernel, layout, case, 60)
    evaluated = run(kernel_graph(kernel, launch), layout, case, Clock(20)).arrays
    assert interpreted.keys() == evaluated.keys()
    return interpreted, evaluated, layout.arrays(case.storages)


def own(name, arguments, constants=BLOCKS, grid="1", **given):
    return launched(OURS, name, arguments, constants, grid, **given)


def with_constants(name, arguments, **constants):
    """A launch with constants that no command line can spell."""
    kernel = find_kernel(load_file(OURS), name)
    memories = Memories()
    parameters = {each.name: each for each in kernel.params}
    bound = [describe(parameters[each], value, memories) for each, value in arguments.items()]
    bound += [ConstantArgument(name=each, value=value) for each, value in constants.items()]
    return kernel, bind(kernel, bound, grid=(1, 1, 1))


def floats(*shape):
    return HostArray(np.zeros(shape, np.float32))


def wrapped():
    """A kernel inside a wrapper that only takes compiled ones."""
    kernel = load_file(OURS).wrapped_copy.inner
    arguments = [
        parse_argument(f"{name}=f32[16]", buffer=buffer)
        for buffer, name in enumerate(("x_ptr", "out_ptr"))
    ]
    block = ConstantArgument(name="BLOCK", value=16)
    return kernel, bind(kernel, [*arguments, block], grid=(1, 1, 1))


LAUNCHES = {
    "strides and gaps": lambda: own(
        "copied_rows",
        [
            *("x_ptr=f32[3,4]:[6,1]", "out_ptr=f32[3,4]:[5,1]"),
            *("x_stride=6", "out_stride=5", "columns=4"),
        ],
        ["BLOCK=8"],
        "3",
    ),
    "aliases": lambda: launched(
        COMMON,
        "vector_add",
        ["x_ptr=f32[64]", "y_ptr=f32[64]", "out_ptr=f32[64]", "n=50"],
        BLOCKS,
        "4",
        aliases=[("x_ptr", "out_ptr")],
    ),
    "booleans": lambda: own("doubled_integers", ["x_ptr=bool[16]", "out_ptr=i32[16]"]),
    "unsigned": lambda: own("doubled_integers", ["x_ptr=u8[16]", "out_ptr=u8[16]"]),
    "autotuned": lambda: launched(
        COMMON,
        "tuned_add",
        ["x_ptr=f32[64]", "y_ptr=f32[64]", "out_ptr=f32[64]", "n=50"],
        ["BLOCK=64", "EVEN=false"],
    ),
    "printing, and a wide scalar": lambda: with_constants(
        "talkative",
        {
            "x_ptr": floats(16),
            "out_ptr": HostArray(np.zeros(16, np.int64)),
            "wide": 3_000_000,
        },
        KIND=TypeConstant(dtype="i32"),
        BLOCK=16,
    ),
    "logic in words": lambda: own(
        "spoken_logic", ["x_ptr=i32[16]", "out_ptr=i32[16]", "n=12"], ["TWICE=true", "BLOCK=16"]
    ),
    "a counter that is a tensor": lambda: own(
        "counted_widely", ["x_ptr=i64[16]", "out_ptr=i64[16]", "n=5"]
    ),
    "block pointers": lambda: launched(
        COMMON,
        "block_pointer_copy",
        ["x_ptr=f32[20,45]", "out_ptr=f32[45,20]", "rows=20", "columns=45", "stride=45"],
        BLOCKS,
        "2",
    ),
    "a wrapped kernel": wrapped,
    "a jitted function": lambda: with_constants(
        "applied",
        {"x_ptr": floats(16), "out_ptr": floats(16)},
        function=find_kernel(load_file(OURS), "doubled"),
        BLOCK=16,
    ),
    "a tuple": lambda: with_constants(
        "paired", {"pair": (floats(16), floats(16)), "out_ptr": floats(16)}, BLOCK=16
    ),
}


@pytest.mark.filterwarnings("ignore:Logical operators")
@pytest.mark.parametrize("name", LAUNCHES)
def test_the_interpreter_leaves_what_the_evaluator_does(name, interpreter):
    interpreted, evaluated, before = both(interpreter, LAUNCHES[name]())
    for array, values in evaluated.items():
        np.testing.assert_array_equal(interpreted[array], values, array)
    assert any((evaluated[array] != before[array]).any() for array in before)


def test_tensor_descriptors(interpreter):
    from triton.tools.tensor_descriptor import TensorDescriptor

    source, target = (TensorDescriptor.from_tensor(floats(4, 16), [1, 16]) for _ in range(2))
    kernel, launch = with_constants("described", {"source": source, "target": target}, BLOCK=16)
    interpreted, evaluated, before = both(interpreter, (kernel, launch))
    np.testing.assert_array_equal(interpreted["target"], evaluated["target"])
    assert (interpreted["target"] != before["target"]).any()


def refused(interpreter, launch_of, seconds=60):
    kernel, launch = launch_of
    layout = lay_out(launch)
    with pytest.raises(NoOracleError) as caught:
        interpreter.run(kernel, layout, case_of(layout), seconds)
    return caught.value.message


def test_what_a_kernel_raises_is_the_reason(interpreter):
    launch = launched(COMMON, "first_of", ["pair_ptr=f32[2]", "out_ptr=f32[2]"])
    assert "undefined_name" in refused(interpreter, launch)
    both(interpreter, vector_add())


def test_an_endless_kernel_is_ended_and_the_next_one_runs():
    with Interpreter() as own_interpreter:
        launch = own("endless", ["x_ptr=f32[1]", "out_ptr=f32[1]"], ())
        assert "takes more than 5 s" in refused(own_interpreter, launch, seconds=5)
        both(own_interpreter, vector_add())


def test_a_kernel_made_inside_a_function_is_out_of_reach(interpreter):
    kernel = load_file(OURS).nested()
    template = own("endless", ["x_ptr=f32[1]", "out_ptr=f32[1]"], ())[1]
    assert "inside a function" in refused(interpreter, (kernel, template))


@pytest.mark.parametrize(
    ("launch_of", "reason"),
    [
        (lambda: matmul(dtype="bf16"), "`a_ptr` is `bf16`"),
        (lambda: own("bf16_inside", ["x_ptr=f32[16]", "out_ptr=f32[16]"]), "is `bf16`"),
        (lambda: own("halved", ["x_ptr=f8e5m2[16]", "out_ptr=f32[16]"]), "`f8E5M2`"),
        (vector_add, None),
    ],
    ids=["bf16 arrays", "bf16 inside", "f8", "f32"],
)
def test_kernels_that_the_interpreter_computes_wrongly_are_known(launch_of, reason):
    found = unsuited(kernel_graph(*launch_of()))
    assert found is None if reason is None else reason in found


def test_a_sibling_takes_f32_for_bf16_and_nothing_else():
    _, launch = own("halved", ["x_ptr=bf16[16]", "out_ptr=i32[16]"])
    sibling = sibling_launch(launch)
    assert [each.dtype for each in sibling.arrays] == ["fp32", "i32"]
    layout = lay_out(sibling)
    case = sibling_case(case_of(lay_out(launch)), layout)
    assert {buffer: array.dtype for buffer, array in case.storages.items()} == {
        0: np.float32,
        1: np.int32,
    }
    assert sibling_launch(sibling) is None
