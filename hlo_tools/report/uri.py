"""Paths as URI references (RFC 3986), which SARIF asks for."""

import re
from urllib.parse import quote

from hlo_tools.report.escape import visible

_WINDOWS_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# What RFC 3986 allows in a path segment besides letters, digits and `-._~`. A colon stays encoded,
# so that the first segment of a relative reference is not read as a scheme.
_SAFE = "/!$&'()*+,;=@"


def path_uri(path: str) -> tuple[str, bool]:
    """Returns a path as a URI reference, and whether that is relative.

    An absolute path, of this system or of Windows, becomes a `file:` URI. A relative one loses
    its leading `./`; one that climbs out with `..` keeps that.
    """
    text = visible(path)
    if _WINDOWS_DRIVE.match(text):
        return "file:///" + quote(text.replace("\\", "/"), safe=_SAFE + ":"), False
    if text.startswith("/"):
        return "file:///" + quote(text.lstrip("/"), safe=_SAFE), False
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return quote("/".join(parts) or ".", safe=_SAFE), True
