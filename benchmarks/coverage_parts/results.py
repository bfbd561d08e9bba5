"""What came of launches, kept in a file as lines of JSON while it is found."""

import json


class Results:
    """The last outcome of each launch in each column, of this run and of those before it.

    Args:
      path: where they are kept; `None` keeps them only while the run lasts.
    """

    def __init__(self, path=None):
        self._path = path
        self._rows = {}
        if path is not None and path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(line))

    def add(self, known, column, outcome):
        """Keeps an outcome.

        Args:
          known: package, name and file of the launch.
          column: which column.
          outcome: what came of it.
        """
        row = {**known, column: outcome}
        self._take(row)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _take(self, row):
        self._rows.setdefault(row["file"], {}).update(row)

    def of(self, file, column):
        """The outcome of a launch in a column; `None` if there is none yet."""
        return self._rows.get(file, {}).get(column)

    def rows(self, files):
        """All that is known of these launches, in their order."""
        return [self._rows[file] for file in files if file in self._rows]


def in_column(rows, column):
    """Each row that has a column, with what is in it beside package, name and file."""
    return [
        {**{key: row[key] for key in ("package", "name", "file")}, **row[column]}
        for row in rows
        if column in row
    ]
