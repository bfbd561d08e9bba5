"""A function over many items on the workers of a Dask cluster, of which any may die.

Dask, because it is the smaller of the two engines that could be had (pure Python, where Ray brings
its own servers), runs where people have machines already (Kubernetes, Slurm, ssh), and gives a task
whose worker died to another one. docs/many-dumps.md says more.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from hlo_tools.errors import InputError
from hlo_tools.workers import Died

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

CONNECT_SECONDS = 30


def run_on_cluster(
    function: Callable[[_Item], _Result], items: Sequence[_Item], scheduler: str
) -> Iterator[tuple[int, _Result | Died]]:
    """Yields the result of each item once, with the item's number, in the order in which they end.

    An item that ends one worker after another, as often as the cluster's
    `distributed.scheduler.allowed-failures` says, counts as done all the same; so does one for
    which `function` raised.

    Args:
      function: one that the workers can import.
      items: what it is called with, one by one.
      scheduler: the scheduler's address, for example `tcp://10.0.0.1:8786`.

    Raises:
      InputError: Dask is not installed, or there is no scheduler at that address.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise InputError("`--dask` needs Dask: pip install 'hlo-tools[dask]'") from error
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:  # nobody answers; no address
        raise InputError(f"there is no Dask scheduler at `{scheduler}`: {error}") from error
    with client:
        # `pure`: two items may be equal, and each is reported.
        futures = client.map(function, items, pure=False)
        numbers = {future: number for number, future in enumerate(futures)}
        del futures
        for future in as_completed(list(numbers)):
            number = numbers.pop(future, None)
            if number is None:
                continue  # told before, and computed again since the worker that held it died
            failure = future.exception()
            if failure is None:
                yield number, future.result()
            else:
                yield number, Died(reason=f"failed with {type(failure).__name__}: {failure}")
            future.release()
