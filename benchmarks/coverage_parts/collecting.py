"""Collects launches from host code, and runs each so that the next finds what it left.

Kernels are run by the graph's evaluator, a program after another, within a time: what takes longer
or has no graph is left out, and its outputs then stay as the host code made them.
"""

import ctypes
import json
import pickle
import time
from contextlib import contextmanager
from unittest import mock

import numpy as np

from hlo_tools.errors import InputError
from translators.graph.evaluator import ArrayDescriptor, ArrayPointer, all_programs, evaluate
from translators.graph.graph import Module
from translators.graph.verifier import verify
from translators.triton import recorder
from translators.triton.frontend import triton_ir
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.kernel_graph import kernel_parameters
from translators.triton.launches import ArrayArgument, DescriptorArgument
from translators.triton.ttir import read_ttir

from .pretence import pretended_gpu
from .store import Collected, kernel_name

LARGEST_MEMORY = 64 << 20
STEPS = 400_000


class OutOfTime(Exception):
    """A launch that takes too long to run here."""


class TritonRefusal(Exception):
    """A launch that Triton itself would not have compiled: no kernel to translate."""


class Collector:
    """Keeps launches in a store, and runs them.

    Args:
      store: where to keep them.
      package: whose kernels are kept where their module does not say.
      unit: what runs.
      run_seconds: how long one launch may run.
      log: the file that says of each launch what came of it.
    """

    def __init__(self, store, package, unit, run_seconds, log):
        self._store = store
        self._package = package
        self._unit = unit
        self._run_seconds = run_seconds
        self._graphs = {}
        self._log = log

    @contextmanager
    def collecting(self):
        """Collects what is launched within it."""
        record = recorder._record

        def observed(*args):
            for each in record(*args):
                self._take(each)
            return ()

        with (
            pretended_gpu(),
            recorder.recording(),
            mock.patch.object(recorder, "_record", observed),
        ):
            yield self

    def _take(self, recorded):
        memory = _memory(recorded)
        module, kernel = kernel_name(recorded.kernel)
        note = {"kernel": f"{module}.{kernel}", "unit": self._unit}
        start = time.perf_counter()
        graph = self._graph(recorded)
        if isinstance(graph, TritonRefusal):
            note["kept"] = str(graph)
        elif sum(map(len, memory.values())) > LARGEST_MEMORY:
            note["kept"] = "too large"
        else:
            collected = Collected(
                package=self._package,
                module=module,
                kernel=kernel,
                unit=self._unit,
                launch=recorded.launch,
                memory={number: array.copy() for number, array in memory.items()},
                jitted=recorded.kernel,
            )
            try:
                note["kept"] = "yes" if self._store.keep(collected) else "known"
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                note["kept"] = f"{type(error).__name__}: {error}"
        note["run"] = self._run(graph, recorded.launch, memory)
        note["seconds"] = round(time.perf_counter() - start, 2)
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")

    def _run(self, graph, launch, memory):
        """Runs the launch and writes what it left behind back; says how that went."""
        if not isinstance(graph, Module):
            return str(graph)
        try:
            arguments = evaluator_arguments(launch, memory)
            order = within(launch.grid, self._run_seconds)
            result = evaluate(graph, arguments, launch.grid, order=order, step_limit=STEPS)
        except InputError as error:
            return f"{type(error).__name__}: {error}"
        except OutOfTime:
            return "out of time"
        for argument, after in zip(arguments, result.arrays, strict=True):
            if after is not None:
                argument.array[:] = after
        return "yes"

    def _graph(self, recorded):
        """The kernel's graph, or why it has none."""
        launch = recorded.launch
        key = (id(recorded.kernel), str(launch.signature), str(launch.singles), str(launch.options))
        if key not in self._graphs:
            # The kernel is kept beside its graph, so that no other has its number.
            self._graphs[key] = (recorded.kernel, _made_graph(recorded.kernel, launch))
        return self._graphs[key][1]


def _made_graph(kernel, launch):
    try:
        text = triton_ir(kernel, launch)
    except InputError as error:
        return TritonRefusal(error)
    try:
        module = read_ttir(text)
        verify(module)
    except InputError as error:
        return error
    return module


def within(grid, seconds):
    """The programs of a grid, until the time is over."""
    end = time.monotonic() + seconds
    for program in all_programs(grid):
        if time.monotonic() > end:
            raise OutOfTime
        yield program


def _memory(recorded):
    """The bytes of each memory that array arguments lie in, by its number: views, not copies."""
    memory = {}
    for argument in recorded.launch.arguments:
        items = getattr(argument, "items", None) or (argument,)
        value = recorded.values.get(argument.name)
        values = value if isinstance(value, tuple | list) else (value,)
        for item, each in zip(items, values, strict=False):
            array = getattr(item, "array", item)
            if isinstance(array, ArrayArgument) and array.buffer not in memory:
                memory[array.buffer] = _storage_bytes(each)
    return memory


def _storage_bytes(value):
    while not hasattr(value, "untyped_storage"):
        value = value.base
    storage = value.untyped_storage()
    if not storage.nbytes():
        return np.empty(0, np.uint8)
    bytes_type = ctypes.c_uint8 * storage.nbytes()
    return np.frombuffer(bytes_type.from_address(storage.data_ptr()), np.uint8)


def evaluator_arguments(launch, memory):
    """What the evaluator takes for each parameter of the graph's kernel."""
    views = {}
    arguments = []
    for parameter in kernel_parameters(launch):
        if isinstance(parameter, DescriptorArgument):
            array = parameter.array
            view = _typed(views, memory, array)[array.offset :]
            arguments.append(
                ArrayDescriptor(
                    array=view,
                    shape=array.shape,
                    strides=array.strides,
                    padding=parameter.padding,
                )
            )
        elif isinstance(parameter, ArrayArgument):
            view = _typed(views, memory, parameter)
            arguments.append(ArrayPointer(array=view, offset=parameter.offset))
        else:
            arguments.append(parameter.value)
    return arguments


def _typed(views, memory, array):
    """The whole memory of an array, as elements of its type: one object for one memory."""
    dtype = NUMPY_DTYPES[array.dtype]
    key = (array.buffer, dtype)
    if key not in views:
        data = memory[array.buffer]
        views[key] = data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)
    return views[key]
