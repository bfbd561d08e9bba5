import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import COMMON, OURS, launched, vector_add

from translators.graph.errors import EvaluationError
from translators.triton.kernel_graph import kernel_graph
from translators.triton.loading import load_file
from translators.triton.recorder import record_call
from translators.verify.evaluation import Case, Clock
from translators.verify.inputs import Source, trials, with_scalars, with_specials
from translators.verify.judging import Judge
from translators.verify.memory import lay_out
from translators.verify.order import order_dependence, reversed_order
from translators.verify.recorded import recorded_storages


def source_of(launch_of, recorded=None, seed=0):
    kernel, launch = launch_of
    module, layout, clock = kernel_graph(kernel, launch), lay_out(launch), Clock(20)
    judge = Judge(module, layout, clock, None)
    backwards = reversed_order(launch.grid)

    def any_order(trial):
        return order_dependence(module, layout, trial, backwards, judge, clock) is None

    return Source(
        module=module,
        layout=layout,
        recorded=recorded,
        any_order=any_order,
        rng=np.random.default_rng(seed),
    )


def drawn(launch_of, count=3, recorded=None, seed=0):
    return list(trials(source_of(launch_of, recorded, seed), Clock(20), count))


def scattered():
    arguments = ["x_ptr=f32[64]", "index_ptr=i32[64]", "out_ptr=f32[64]"]
    return launched(OURS, "scattered", arguments, ["BLOCK=16"], "4")


def gathered(dtype="i32"):
    arguments = ["x_ptr=f32[50]", f"index_ptr={dtype}[16]", "out_ptr=f32[16]"]
    return launched(OURS, "gathered", arguments, ["BLOCK=16"])


def test_draws_differ_hold_both_zeros_and_are_the_same_again_for_a_seed():
    first, again, other = (drawn(vector_add(), seed=seed) for seed in (5, 5, 6))
    assert [each.case.title for each in first] == ["normal", "wide range", "normal"]
    arrays = [each.case.storages[0] for each in first]
    assert len({each.tobytes() for each in arrays}) == 3
    assert [each.case.storages[0].tobytes() for each in again] == [
        each.tobytes() for each in arrays
    ]
    assert other[0].case.storages[0].tobytes() != arrays[0].tobytes()
    zeros = arrays[0][arrays[0] == 0]
    assert {bool(each) for each in np.signbit(zeros)} == {False, True}
    assert np.abs(arrays[1]).max() > 2 * np.abs(arrays[0]).max()


def test_outputs_start_with_random_contents():
    for trial in drawn(vector_add()):
        assert len(np.unique(trial.case.storages[2])) > 900


@pytest.mark.parametrize("dtype", ["i32", "i64", "u8"])
def test_integers_that_are_indices_stay_within_the_array(dtype):
    for trial in drawn(gathered(dtype)):
        indices = trial.case.storages[1]
        assert trial.case.title.endswith("small integers")
        assert indices.min() >= 0
        assert indices.max() < 16
        assert len(np.unique(indices)) > 3


def test_places_that_are_written_differ():
    for trial in drawn(scattered()):
        assert trial.case.title.endswith("distinct integers")
        assert sorted(trial.case.storages[1]) == list(range(64))


def test_integers_that_are_data_are_drawn_from_both_signs():
    arguments = ["x_ptr=i32[64]", "out_ptr=i32[64]"]
    trial = drawn(launched(OURS, "doubled_integers", arguments, ["BLOCK=16"], "4"))[0]
    assert trial.case.storages[0].min() < 0 < trial.case.storages[0].max()


def test_integers_that_leave_nothing_but_nan_are_not_the_first_choice():
    arguments = ["x_ptr=f32[8,64]", "length_ptr=i32[8]", "out_ptr=f32[8]"]
    for trial in drawn(launched(OURS, "mean_of_some", arguments, ["BLOCK=16"], "8")):
        found = trial.outcome.storages[2]
        assert np.isfinite(found).sum() > len(found) / 2, trial.case.title


def test_what_host_code_had_in_memory_comes_first_and_its_indices_stay():
    recorded = {
        0: np.arange(50, dtype=np.float32),
        1: np.arange(16, dtype=np.int32)[::-1].copy(),
        2: np.zeros(16, np.float32),
    }
    found = drawn(gathered(), recorded=recorded)
    assert [each.case.title for each in found] == ["as recorded", "normal", "wide range"]
    assert found[0].outcome.arrays["out_ptr"].tolist() == list(range(16))[::-1]
    for trial in found:
        assert trial.case.storages[1].tolist() == recorded[1].tolist()
    assert found[1].case.storages[0].tolist() != recorded[0].tolist()


def test_memory_of_a_recorded_launch_is_what_the_host_code_passed():
    (launch,) = record_call(load_file(COMMON), "add(f32[100], f32[100])")
    storages = recorded_storages(lay_out(launch.launch), launch.values)
    first = next(iter(launch.values.values()))
    assert storages[0].tolist() == np.asarray(getattr(first, "values", first)).tolist()


def test_a_kernel_that_leaves_its_arrays_whatever_it_is_given_is_an_error():
    launch = launched(OURS, "overrun", ["x_ptr=f32[16]", "out_ptr=f32[16]"], ["BLOCK=16"])
    with pytest.raises(EvaluationError, match="touches element 16"):
        drawn(launch)


def test_nan_and_both_infinities_are_put_among_floats_alone():
    case = Case(
        title="",
        storages={0: np.ones(2000, np.float16), 1: np.ones(2000, np.int32)},
    )
    changed = with_specials(case, np.random.default_rng(0))
    special = changed.storages[0][~np.isfinite(changed.storages[0])]
    assert np.isnan(special).any()
    assert {np.inf, -np.inf} <= set(special[~np.isnan(special)].tolist())
    assert changed.storages[0].dtype == np.float16
    assert (changed.storages[1] == 1).all()


def test_scalars_shrink_and_others_stay():
    arguments = ["x_ptr=f32[64]", "out_ptr=f32[64]", "scale=2.0"]
    _, launch = launched(OURS, "scaled", arguments, ["BLOCK=16"], "4")
    case = Case(title="", storages={})
    assert with_scalars(case, lay_out(launch), ("scale",)).scalars == {"scale": 1.5}
    assert with_scalars(case, lay_out(launch), ()).scalars == {}
