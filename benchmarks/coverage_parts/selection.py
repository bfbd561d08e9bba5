"""Which of the launches that are kept a run attempts."""

import re

from .store import Store, header


def chosen_launches(cache, *, packages=None, only=None, variants=3, every=1):
    """The stored launches asked for with what is known of each: those that cost least, first.

    Args:
      cache: the directory of the store.
      packages: whose kernels; all if `None`.
      only: a regular expression that a launch's file must match.
      variants: how many launches of each kernel.
      every: of the kernels in the order of their names, one in so many.
    """
    kernels = {}
    for path in Store(cache).paths():
        known = header(path)
        if packages and known["package"] not in packages:
            continue
        if only and not re.search(only, path.name):
            continue
        name = f"{known['module']}.{known['kernel']}"
        kernels.setdefault((known["package"], name), []).append((known["cost"], path))
    found = [
        (cost, path, {"package": package, "name": name, "file": path.name})
        for package, name in sorted(kernels)[::every]
        for cost, path in sorted(kernels[package, name])[:variants]
    ]
    return {path: known for _, path, known in sorted(found, key=lambda each: each[0])}
