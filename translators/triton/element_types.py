"""Element types as `triton.language` has them."""

from functools import cache
from typing import Any

from translators.triton.launches import canonical_dtype


@cache
def language_dtypes() -> dict[str, Any]:
    """The types of `triton.language`, by Triton's short spelling, such as `fp32`."""
    import triton.language as tl

    return {
        canonical_dtype(str(each)): each
        for each in vars(tl).values()
        if type(each) is tl.dtype and str(each) != "void"
    }
