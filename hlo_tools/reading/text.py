"""From bytes to text with one kind of line end."""

import codecs

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_utf16(data: bytes | bytearray) -> bool:
    """Whether the bytes start as UTF-16 with a byte order mark, as some shells write pipes."""
    return data.startswith(_UTF16_BOMS)


def decode(data: bytes | bytearray) -> str:
    r"""Decodes UTF-8, or UTF-16 with a byte order mark, and makes every line end `\n`.

    Bytes that are not valid become `\xNN`: nothing is lost, and whatever prints or encodes the
    text later cannot fail on it.
    """
    if is_utf16(data):
        text = data.decode("utf-16", errors="backslashreplace")
    else:
        text = data.decode("utf-8", errors="backslashreplace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r" in text else text
