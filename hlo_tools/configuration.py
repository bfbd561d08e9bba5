"""TOML tables, read key by key with errors that name file and line; knows no key of its own."""

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from hlo_tools.errors import SettingsError

MAX_CONFIG_BYTES = 4_000_000

_ERROR_PLACE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*[=.]""")
_KEY_PART = re.compile(r""""[^"]*"|'[^']*'|[\w-]+""")


def unknown(kind: str, name: str, choices: Iterable[str]) -> str:
    """Returns the sentence that `name` is no known `kind`, with the nearest of the choices."""
    near = get_close_matches(name, list(choices), n=1)
    return f"unknown {kind} `{name}`" + (f"; did you mean `{near[0]}`?" if near else "")


@dataclass(slots=True, kw_only=True)
class Table:
    """A table of a TOML file, of which every key must be asked for.

    Attributes:
      file: the file, as the user named it.
      text: the whole text of the file, to find lines in.
      keys: the keys that lead to the table.
      index: which element it is, in an array of tables.
      values: what it holds.
    """

    file: str
    text: str
    keys: tuple[str, ...]
    values: Mapping[str, object]
    index: int = 0
    _asked: set[str] = field(default_factory=set)

    def has(self, key: str) -> bool:
        """Says whether the table holds `key`, which is then a known one."""
        self._asked.add(key)
        return key in self.values

    def string(self, key: str) -> str:
        """Returns a value that must be a string."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.error(f"`{key}` must be a string", key)
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Returns a value that must be a list of strings."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(f"`{key}` must be a list of strings", key)
        return tuple(value)

    def flag(self, key: str) -> bool:
        """Returns a value that must be `true` or `false`."""
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self.error(f"`{key}` must be `true` or `false`", key)
        return value

    def number(self, key: str) -> float:
        """Returns a value that must be a finite number."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"`{key}` must be a number", key)
        if not math.isfinite(value):
            raise self.error(f"`{key}` must be finite", key)
        return value

    def like(self, key: str, example: object) -> object:
        """Returns a value that must have the type of `example`, a rule's default."""
        match example:
            case bool():
                return self.flag(key)
            case int():
                number = self.number(key)
                if not isinstance(number, int):
                    raise self.error(f"`{key}` must be a whole number", key)
                return number
            case float():
                return float(self.number(key))
            case str():
                return self.string(key)
            case tuple() | list() | frozenset():
                return type(example)(self.strings(key))
        raise self.error(f"`{key}` cannot be configured", key)

    def table(self, key: str) -> "Table":
        """Returns a value that must be a table."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.error(f"`{key}` must be a table", key)
        return Table(file=self.file, text=self.text, keys=(*self.keys, key), values=value)

    def tables(self, key: str) -> Iterator["Table"]:
        """Yields the elements of a value that must be an array of tables."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(f"`{key}` must be an array of tables", key)
        for index, item in enumerate(value):
            keys = (*self.keys, key)
            yield Table(file=self.file, text=self.text, keys=keys, values=item, index=index)

    def finish(self, kind: str) -> None:
        """Raises an error for a key that nobody asked for; `kind` says what keys are here."""
        for key in self.values:
            if key not in self._asked:
                raise self.error(unknown(kind, key, sorted(self._asked)), key)

    def error(self, message: str, key: str | None = None) -> SettingsError:
        """Returns an error at the line of `key`, or at that of the table, where they are found."""
        return SettingsError(message, path=self.file, line=self.line(key))

    def line(self, key: str | None = None) -> int | None:
        """Returns the 1-based line of `key`, or else of the table's header, where found."""
        header = None
        seen = -1
        current: tuple[str, ...] = ()
        for number, line in enumerate(self.text.split("\n"), start=1):
            if match := _HEADER.match(line):
                current = tuple(part.strip("\"'") for part in _KEY_PART.findall(match[1]))
                seen += current == self.keys
                if current == self.keys and seen == self.index:
                    header = number
                elif key is not None and current == (*self.keys, key):
                    return number
            elif current == self.keys and max(seen, 0) == self.index and key is not None:
                found = _KEY.match(line)
                if found and found[1].strip("\"'") == key:
                    return number
        if header is None and self.keys:
            # Written inside its parent: `table.key = 1`, or `table = { key = 1 }`.
            return self._line_in_parent(key)
        return header

    def _line_in_parent(self, key: str | None) -> int | None:
        lines = self.text.split("\n")
        parent = replace(self, keys=self.keys[:-1], values={}, index=0)
        name = re.escape(self.keys[-1])
        if key is not None:
            dotted = re.compile(
                rf"""\s*["']?{name}["']?\s*\.\s*["']?{re.escape(key)}["']?\s*[=.]"""
            )
            first = parent.line(self.keys[-1])
            for number in range(first or len(lines) + 1, len(lines) + 1):
                if dotted.match(lines[number - 1]):
                    return number
                if _HEADER.match(lines[number - 1]):
                    break
        return parent.line(self.keys[-1])


def read_toml(path: Path) -> Table:
    """Returns the top of a TOML file.

    Raises:
      SettingsError: the file cannot be read or is not TOML.
    """
    file = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
        if len(data) > MAX_CONFIG_BYTES:
            raise SettingsError(f"larger than {MAX_CONFIG_BYTES:,} bytes", path=file)
        text = data.decode("utf-8")
        return Table(file=file, text=text, keys=(), values=tomllib.loads(text))
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", path=file) from error
    except UnicodeDecodeError as error:
        raise SettingsError("not UTF-8", path=file) from error
    except RecursionError as error:
        raise SettingsError("nested too deeply", path=file) from error
    except tomllib.TOMLDecodeError as error:
        match = _ERROR_PLACE.fullmatch(str(error))
        message, line, column = match.groups() if match else (str(error), None, None)
        raise SettingsError(
            f"not TOML: {message}",
            path=file,
            line=int(line) if line else None,
            column=int(column) if column else None,
        ) from error
