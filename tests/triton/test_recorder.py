import sys
from importlib.util import find_spec

import numpy as np
import pytest

pytest.importorskip("triton.language")

from launching import KERNELS, constants_of

from hlo_tools.errors import InputError
from translators.triton import driver, host_arrays
from translators.triton.launches import (
    ArrayArgument,
    LaunchError,
    ScalarArgument,
    TypeConstant,
)
from translators.triton.loading import load_file
from translators.triton.recorder import record_call

without_torch = pytest.param(False, id="stand-ins")
with_torch = pytest.param(
    True,
    id="torch",
    marks=pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
)


@pytest.fixture(params=[without_torch, with_torch])
def module(request, monkeypatch):
    """`kernels.py`, with example arrays of torch's and of our own."""
    if not request.param:
        for user in (driver, host_arrays):
            monkeypatch.setattr(user, "find_spec", lambda name: None)
    return load_file(KERNELS)


def only(launches):
    (launch,) = launches
    return launch.launch


def by_name(launch):
    return {argument.name: argument for argument in launch.arguments}


def test_a_recorded_launch_says_what_the_kernel_was_called_with(module):
    launch = only(record_call(module, "add(f32[98432], f32[98432])"))
    arguments = by_name(launch)
    assert list(arguments) == ["x_ptr", "y_ptr", "out_ptr", "n", "BLOCK"]
    assert launch.grid == (97, 1, 1)
    assert arguments["n"] == ScalarArgument(name="n", dtype="i32", value=98432)
    assert constants_of(launch) == {"BLOCK": 1024}
    assert {each.shape for each in launch.arrays} == {(98432,)}
    assert {each.dtype for each in launch.arrays} == {"fp32"}
    assert launch.aliases == ()
    assert launch.kernel.function == "vector_add"
    source = KERNELS.read_text().splitlines()
    assert source[launch.kernel.line - 1].startswith("def vector_add(")


def test_strides_and_names_are_those_of_the_call(module):
    launch = only(
        record_call(module, "multiply(a=f32[64,48]:[1,64], b=f16[48,40], activation='relu')")
    )
    arguments = by_name(launch)
    assert arguments["a_ptr"].strides == (1, 64)
    assert arguments["b_ptr"].dtype == "fp16"
    assert arguments["stride_ak"].value == 64
    assert arguments["stride_bk"].value == 40
    assert constants_of(launch)["ACTIVATION"] == "relu"
    assert constants_of(launch)["stride_am"] == 1
    assert launch.grid == (2, 2, 1)
    assert dict(launch.options) == {"num_warps": 4}


def test_arguments_in_one_memory_are_aliases(module):
    launch = only(record_call(module, "add_in_place(bf16[256], bf16[256])"))
    assert launch.aliases == (("x_ptr", "out_ptr"),)


@pytest.mark.parametrize(("configuration", "block"), [(0, 64), (1, 128)])
def test_autotuners_take_the_configuration_asked_for(module, configuration, block):
    launch = only(record_call(module, "tuned(f32[192], f32[192])", configuration))
    assert constants_of(launch) == {"BLOCK": block, "EVEN": 192 % block == 0}
    assert launch.grid == (-(-192 // block), 1, 1)
    assert dict(launch.options)["num_warps"] == 2


def test_a_configuration_that_is_not_there_is_said(module):
    with pytest.raises(LaunchError, match="has 2 configurations"):
        record_call(module, "tuned(f32[192], f32[192])", 2)


def test_a_kernel_compiled_first_is_recorded_when_it_is_launched(module):
    launch = only(record_call(module, "warmed_softmax(f32[7,100])"))
    assert launch.grid == (7, 1, 1)
    assert constants_of(launch) == {"BLOCK": 128}


def test_what_went_in_is_kept_beside_the_launch(module):
    (recorded,) = record_call(module, "add(f32[8], f32[8])")
    assert list(recorded.values) == ["x_ptr", "y_ptr", "out_ptr", "n", "BLOCK"]
    assert recorded.kernel is module.vector_add


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("add", "is not a call"),
        ("subtract(f32[4])", "no function `subtract`"),
        ("nothing(f32[4])", "launches no kernel"),
        ("add(f32[0], f32[0])", "launches no kernel"),
        ("fails(f32[4])", r"kernels.py:\d+: .*ValueError: there is no such mode"),
        ("add(f32[4])", "TypeError"),
        ("add(f32[4], relu)", "`relu` is no array"),
        ("misspelt(f32[64], f32[64])", "`num_wraps` is no parameter"),
    ],
)
def test_calls_that_cannot_be_recorded_are_said(module, text, part):
    with pytest.raises(InputError, match=part):
        record_call(module, text)


def test_a_bug_of_ours_is_not_laid_at_the_persons_door(module, monkeypatch):
    monkeypatch.setattr("translators.triton.recorder.grid_of_three", None)
    with pytest.raises(TypeError):
        record_call(module, "add(f32[8], f32[8])")


def test_triton_is_as_it_was_before(module):
    """Neither the driver nor torch stays replaced."""
    from triton.runtime.driver import driver as config
    from triton.runtime.jit import JITFunction

    before = (config._active, JITFunction.run)
    record_call(module, "add(f32[8], f32[8])")
    assert (config._active, JITFunction.run) == before
    if find_spec("torch") is not None:
        import torch

        assert not torch.zeros(1).is_cuda
        assert torch.zeros(1).device.type == "cpu"


def write(directory, text, name="program.py"):
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_program_that_asks_for_a_gpu_while_it_loads(tmp_path):
    """What the official tutorials ask for and launch before anybody calls them."""
    make = (
        "from translators.triton.host_arrays import HostArray\n"
        "import numpy as np\n"
        "OUT = HostArray(np.zeros(64, np.float32))\n"
    )
    path = write(
        tmp_path,
        "import triton\n"
        "DEVICE = triton.runtime.driver.active.get_active_torch_device()\n"
        "TARGET = triton.runtime.driver.active.get_current_target()\n"
        "assert TARGET.backend == 'cuda'\n"
        "SIZES = triton.runtime.driver.active.utils.get_device_properties(0)\n"
        "SMS = SIZES['multiprocessor_count']\n"
        "import triton.language as tl\n"
        "@triton.jit\n"
        "def fill(out_ptr, BLOCK: tl.constexpr):\n"
        "    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)\n"
        f"{make}"
        "fill[(1,)](OUT, BLOCK=64)\n"
        "MS, LOW, HIGH = triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2, 0.8])\n",
    )
    loaded = load_file(path)
    assert loaded.SMS > 0
    assert str(loaded.DEVICE).startswith("cuda")
    sys.modules.pop(loaded.__name__)


def test_an_autotuner_whose_key_names_no_argument(tmp_path):
    """Older Tritons took it, and Triton 3.9 does not."""
    path = write(
        tmp_path,
        "import triton\n"
        "import triton.language as tl\n"
        "@triton.autotune([triton.Config({'BLOCK': 8})], key=['BATCH'])\n"
        "@triton.jit\n"
        "def fill(out_ptr, BLOCK: tl.constexpr):\n"
        "    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)\n"
        "def run(x):\n"
        "    fill[(1,)](x)\n",
        "older_program.py",
    )
    launch = only(record_call(load_file(path), "run(f32[8])"))
    assert constants_of(launch) == {"BLOCK": 8}


def test_lists_and_element_types_reach_the_host_function(module, tmp_path):
    path = write(
        tmp_path,
        "import triton\n"
        "import triton.language as tl\n"
        "@triton.jit\n"
        "def copy(x_ptr, out_ptr, DTYPE: tl.constexpr, BLOCK: tl.constexpr):\n"
        "    lanes = tl.arange(0, BLOCK)\n"
        "    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes).to(DTYPE))\n"
        "def run(arrays, shape, dtype, own):\n"
        "    for x in arrays:\n"
        "        out = x.new_empty(shape, dtype=dtype)\n"
        "        copy[(1,)](x, out, DTYPE=own, BLOCK=8)\n",
        f"copying_{id(module)}.py",
    )
    call = "run([f32[8], f32[8]], (2, 4), torch.float16, tl.float16)"
    recorded = [each.launch for each in record_call(load_file(path), call)]
    assert [each.arrays[1].shape for each in recorded] == [(2, 4), (2, 4)]
    assert {each.arrays[1].dtype for each in recorded} == {"fp16"}
    assert constants_of(recorded[0]) == {"DTYPE": TypeConstant(dtype="fp16"), "BLOCK": 8}


def test_a_file_that_raises_is_said_with_its_line(tmp_path):
    path = write(tmp_path, "x = 1\n\ny = x / 0\n", "broken_program.py")
    with pytest.raises(InputError, match="ZeroDivisionError") as caught:
        load_file(path)
    assert (caught.value.path, caught.value.line) == (str(path), 3)


def test_a_file_that_is_no_python_is_said_with_its_line(tmp_path):
    path = write(tmp_path, "x = 1\ny = = 2\n", "no_python.py")
    with pytest.raises(InputError, match="SyntaxError") as caught:
        load_file(path)
    assert caught.value.line == 2


def test_a_file_does_not_take_the_place_of_a_module_of_its_name(tmp_path):
    import json

    path = write(tmp_path, "SIZE = 3\n", "json.py")
    assert load_file(path).SIZE == 3
    assert sys.modules["json"] is json
    sys.path.remove(str(tmp_path))


def test_a_file_in_a_package_may_import_from_it(tmp_path):
    package = tmp_path / "some_kernels"
    package.mkdir()
    write(package, "", "__init__.py")
    write(package, "SIZE = 64\n", "sizes.py")
    path = write(package, "from .sizes import SIZE\n", "main.py")
    assert load_file(path).SIZE == 64


def test_stand_in_arrays_place_their_elements_as_asked(monkeypatch):
    """Against NumPy's own strides; views keep their place in the memory they are views of."""
    monkeypatch.setattr(host_arrays, "find_spec", lambda name: None)
    argument = ArrayArgument(name="x", dtype="bf16", shape=(3, 4), strides=(5, 1), buffer=0)
    array = host_arrays.example_array(argument, np.random.default_rng(0))
    assert array.stride() == (5, 1)
    assert array.memory.size == 2 * 5 + 3 + 1
    assert not array.is_contiguous()
    row = array[1]
    assert row.storage_offset() == 5
    assert row.untyped_storage().data_ptr() == array.data_ptr()
    assert array.T.stride() == (1, 5)
    assert array.contiguous().stride() == (4, 1)
    np.testing.assert_array_equal(array.reshape(12).values, array.values.reshape(12))
