import jax.numpy as jnp
import pytest

pytest.importorskip("triton.language")

from subjects import COMMON, OURS, Signature

from translators.triton.kernel_graph import kernel_graph
from translators.triton.launches import LaunchError
from translators.triton.loading import load_file
from translators.triton.recorder import record_call
from translators.verify.emitted import Emitted
from translators.verify.errors import VerificationError
from translators.verify.ladder import Settings
from translators.verify.relaunch import (
    configurations_rung,
    explicit_rungs,
    other_sizes,
    sizes_rung,
)
from translators.verify.report import Status
from translators.verify.subject import Subject

QUICK = Settings(inputs=1, specials=False)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("add(f32[98432], f32[98432])", ["add(f32[98431], f32[98431])"]),
        (
            "f(x=f32[64,781], n=64, s='64 f32[64]', rate=64.5)",
            [
                "f(x=f32[63,779], n=63, s='64 f32[64]', rate=64.5)",
                "f(x=f32[63,781], n=63, s='64 f32[64]', rate=64.5)",
                "f(x=f32[64,779], n=64, s='64 f32[64]', rate=64.5)",
            ],
        ),
        ("f(f32[4,8], [8, 4, 8], torch.float16)", ["f(f32[3,7], [7, 3, 7], torch.float16)"]),
        ("f(f32[1,8], i64[8], 5)", ["f(f32[1,7], i64[7], 5)"]),
        ("f(f32[4,3])", ["f(f32[1,1])", "f(f32[1,3])", "f(f32[4,1])"]),
        ("f(f32[1], 3)", []),
        ("f(3)", []),
    ],
)
def test_sizes_change_together_to_odd_ones(call, expected):
    found = [variant.call for variant in other_sizes(call)]
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


def test_strides_are_not_guessed():
    with pytest.raises(LaunchError, match="strides"):
        list(other_sizes("f(f32[4,8]:[8,1])"))


def prepared(function, results=("out_ptr",)):
    """Takes the same function for every launch."""

    def prepare(recorded):
        arrays = tuple(array.name for array in recorded.launch.arrays)
        return Subject(
            launch=recorded.launch,
            module=kernel_graph(recorded.kernel, recorded.launch),
            emitted=Emitted(signature=Signature(arrays, tuple(results)), call=function),
            kernel=recorded.kernel,
            values=recorded.values,
        )

    return prepare


def tried(rung_of, file, call, prepare):
    module = load_file(file)
    kernel = record_call(module, call)[-1].launch.kernel
    return rung_of(module, call, prepare, kernel=kernel, settings=QUICK)


ADD = "add(f32[4096], f32[4096])"


def test_a_function_that_is_right_at_every_size_passes():
    found = tried(sizes_rung, COMMON, ADD, prepared(lambda x, y, out: x + y))
    assert (found.status, "4095 for 4096" in found.reason) == (Status.PASSED, True)


def test_a_function_that_is_right_for_whole_blocks_alone_fails():
    def whole_blocks(x, y, out):
        whole = x.size // 1024 * 1024
        return jnp.concatenate([(x + y)[:whole], out[whole:]])

    found = tried(sizes_rung, COMMON, ADD, prepared(whole_blocks))
    assert (found.status, found.array) == (Status.FAILED, "out_ptr")
    assert "4095 for 4096: JAX against the evaluator" in found.reason
    assert found.index >= (3072,)


def test_sizes_that_host_code_refuses_are_left_as_they_are():
    call = "copy_eight_columns(f32[4,8], f32[4,8])"
    found = tried(sizes_rung, OURS, call, prepared(lambda x, out: x))
    assert found.status is Status.PASSED
    assert "3 for 4" in found.reason


def test_sizes_that_are_refused_one_and_all_are_skipped_with_the_reasons():
    def refuse(recorded):
        if recorded.launch.arrays[0].shape != (4096,):
            raise VerificationError("only 4096")
        raise AssertionError("not asked for")

    found = tried(sizes_rung, COMMON, ADD, refuse)
    assert (found.status, found.reason) == (Status.SKIPPED, "4095 for 4096: only 4096")


def test_a_call_without_sizes_is_skipped():
    module = load_file(COMMON)
    kernel = record_call(module, ADD)[0].launch.kernel
    found = sizes_rung(module, "add(1, 2)", None, kernel=kernel, settings=QUICK)
    assert found.status is Status.SKIPPED


TUNED = "tune_copy(f32[40], f32[40])"


def test_other_configurations_of_an_autotuner_are_tried():
    found = tried(configurations_rung, OURS, TUNED, prepared(lambda x, out: x))
    assert (found.status, found.reason) == (Status.PASSED, "configuration 1")


def test_a_function_that_is_wrong_for_another_configuration_fails():
    def prepare(recorded):
        constants = {each.name: getattr(each, "value", None) for each in recorded.launch.arguments}
        wrong = constants["BLOCK"] == 8
        return prepared(lambda x, out: x + 1 if wrong else x)(recorded)

    found = tried(configurations_rung, OURS, TUNED, prepare)
    assert found.status is Status.FAILED
    assert found.reason.startswith("configuration 1: JAX against the evaluator")


def test_without_an_autotuner_there_are_no_configurations():
    found = tried(configurations_rung, COMMON, ADD, prepared(lambda x, y, out: x + y))
    assert found.status is Status.SKIPPED


def test_explicit_launches_say_that_they_cannot_be_varied():
    assert [each.status for each in explicit_rungs()] == [Status.SKIPPED] * 2
