import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import OURS, launched

from translators.graph.errors import EvaluationError
from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import ArrayArgument, KernelSource, Launch
from translators.verify.errors import TooSlowError, VerificationError
from translators.verify.evaluation import Case, Clock, run
from translators.verify.memory import fill_with_poison, lay_out
from translators.verify.recorded import recorded_storages

SOURCE = KernelSource(function="kernel", file="kernel.py", line=3)


def array(name, shape, strides, buffer=0, offset=0, dtype="fp32"):
    return ArrayArgument(
        name=name, dtype=dtype, shape=shape, strides=strides, buffer=buffer, offset=offset
    )


def laid_out(*arrays):
    return lay_out(Launch(kernel=SOURCE, arguments=arrays, grid=(1, 1, 1)))


def test_a_storage_holds_exactly_its_arrays_and_knows_its_gaps():
    layout = laid_out(array("x", (2, 3), (5, 1), offset=7), array("y", (2,), (1,), buffer=1))
    assert (layout.storages[0].size, layout.storages[1].size) == (8, 2)
    assert layout.storages[0].owned.tolist() == [True] * 3 + [False] * 2 + [True] * 3
    assert layout.has_gaps
    assert not laid_out(array("y", (2,), (1,))).has_gaps


def test_arrays_in_one_buffer_share_a_storage():
    layout = laid_out(array("x", (6,), (1,), offset=4), array("y", (3,), (2,), offset=5))
    storage = np.arange(6, dtype=np.float32)
    assert layout.arrays({0: storage})["y"].tolist() == [1, 3, 5]
    assert layout.views["x"].offset == 0


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "expected"),
    [
        ((2, 3), (1, 2), 0, [[0, 2, 4], [1, 3, 5]]),
        ((3,), (-2,), 4, [4, 2, 0]),
        ((2, 2), (0, 1), 0, [[0, 1], [0, 1]]),
        ((0, 3), (3, 1), 0, []),
    ],
    ids=["transposed", "reversed", "expanded", "empty"],
)
def test_views_follow_their_strides(shape, strides, offset, expected):
    layout = laid_out(array("x", shape, strides, offset=offset))
    storage = np.arange(layout.storages[0].size, dtype=np.float32)
    assert layout.arrays({0: storage})["x"].tolist() == expected


def test_two_element_types_in_one_buffer_are_refused_at_the_kernel():
    with pytest.raises(VerificationError, match="different element types: fp32, i32") as caught:
        laid_out(array("x", (2,), (1,)), array("y", (2,), (1,), dtype="i32"))
    assert (caught.value.path, caught.value.line) == ("kernel.py", 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, np.bool_])
def test_the_two_poisons_differ_and_the_first_is_nan(dtype):
    where = np.array([True, False])
    first, second = (fill_with_poison(np.zeros(2, dtype), where, filling) for filling in (0, 1))
    assert first.tobytes() != second.tobytes()
    assert first[1] == second[1] == 0
    assert np.isnan(first[0]) == (np.dtype(dtype).kind == "f")


def test_a_change_in_a_gap_is_noticed():
    layout = laid_out(array("x", (2, 3), (5, 1)))
    before = layout.poisoned({0: np.zeros(8, np.float32)}, 0)
    after = {0: before[0].copy()}
    assert layout.damaged_gap(before, after) is None
    after[0][4] = 1
    assert layout.damaged_gap(before, after) == "x"


def copied(columns=4):
    """A copy of three rows that are wider in memory."""
    kernel, launch = launched(
        OURS,
        "copied_rows",
        [
            *("x_ptr=f32[3,4]:[6,1]", "out_ptr=f32[3,4]:[5,1]"),
            *("x_stride=6", "out_stride=5", f"columns={columns}"),
        ],
        ["BLOCK=8"],
        "3",
    )
    layout = lay_out(launch)
    storages = {
        buffer: np.arange(storage.size, dtype=np.float32) + 1
        for buffer, storage in layout.storages.items()
    }
    return kernel_graph(kernel, launch), layout, Case(title="", storages=storages)


def test_a_run_says_what_it_read_and_wrote():
    module, layout, case = copied(columns=3)
    outcome = run(module, layout, case, Clock(10))
    read, written = layout.arrays(outcome.read), layout.arrays(outcome.written)
    assert read["x_ptr"].tolist() == [[True] * 3 + [False]] * 3
    assert written["out_ptr"].tolist() == [[True] * 3 + [False]] * 3
    assert not read["out_ptr"].any()
    assert not written["x_ptr"].any()
    arrays = layout.arrays(case.storages)
    assert outcome.arrays["out_ptr"][:, :3].tolist() == arrays["x_ptr"][:, :3].tolist()
    assert outcome.arrays["out_ptr"][:, 3].tolist() == arrays["out_ptr"][:, 3].tolist()


def test_an_access_one_element_past_an_array_is_an_error():
    kernel, launch = launched(OURS, "overrun", ["x_ptr=f32[16]", "out_ptr=f32[16]"], ["BLOCK=16"])
    layout = lay_out(launch)
    storages = {each: np.zeros(16, np.float32) for each in layout.storages}
    with pytest.raises(EvaluationError, match="touches element 16 of a buffer of 16 elements"):
        run(kernel_graph(kernel, launch), layout, Case(title="", storages=storages), Clock(10))


def test_a_run_ends_when_its_time_is_over():
    module, layout, case = copied()
    with pytest.raises(TooSlowError, match="within 0 s"):
        run(module, layout, case, Clock(0))


def test_recorded_memory_is_copied_with_gaps_and_aliases():
    from translators.triton.host_arrays import HostStorage

    memory = HostStorage(np.arange(20, dtype=np.float32))
    x, y = memory.array(2, (2, 3), (5, 1)), memory.array(4, (2,), (1,))
    layout = laid_out(array("x", (2, 3), (5, 1), offset=2), array("pair.0", (2,), (1,), offset=4))
    found = recorded_storages(layout, {"x": x, "pair": (y,)})
    assert found[0].tolist() == list(range(2, 10))
    assert layout.arrays(found)["pair.0"].tolist() == [4, 5]
