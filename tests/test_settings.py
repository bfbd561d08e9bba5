"""Configuration and options become one value, or an error that says where and what is near."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.errors import SettingsError
from hlo_tools.findings import Severity
from hlo_tools.settings import Overrides, Settings, load_settings


@dataclass(frozen=True)
class Spec:
    id: str
    name: str
    options: Mapping[str, object] = field(default_factory=dict)


RULES = {
    rule.name: rule
    for rule in (
        Spec("HLO201", "layout-copy"),
        Spec("HLO301", "padding-waste", {"min_waste": 0.25, "max_reported": 5, "deep": False}),
        Spec("HLO302", "mxu-underuse", {"opcodes": ("dot",), "mode": "all"}),
    )
}


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(text: str | None = None, *, name: str = "pyproject.toml", **overrides: object) -> Settings:
    if text is not None:
        Path(name).write_text(text, encoding="utf-8")
    path = None if name == "pyproject.toml" else Path(name)
    return load_settings(path, Overrides(**overrides), RULES)  # type: ignore[arg-type]


def table(text: str) -> str:
    return f"[tool.hlo-lint]\n{text}\n"


def test_without_configuration_every_rule_runs(in_directory: Path) -> None:
    settings = load()
    assert settings.enabled == ("HLO201", "HLO301", "HLO302")
    assert settings.fail_on == Severity.WARNING
    assert settings.min_saving == 0.01
    assert settings.source_root == in_directory


def test_every_key_is_read(in_directory: Path) -> None:
    settings = load(
        table(
            'select = ["HLO3", "layout-copy"]\nignore = ["mxu-underuse"]\nfail-on = "never"\n'
            'min-saving = 2.5\nchip = "v6e"\nsource-root = "src"\nbaseline = "known.json"\n'
            'show-notes = true\nlibrary-paths = ["*/vendor/*"]\nown-paths = ["*/mine/*"]\n'
            "[[tool.hlo-lint.op-ignores]]\n"
            'op-name = "*/attention/*"\nrules = ["padding-waste"]\nreason = "heads of 64"\n'
            "[tool.hlo-lint.rules.padding-waste]\nmin-waste = 1\nmax-reported = 3\ndeep = true\n"
            '[tool.hlo-lint.rules.mxu-underuse]\nopcodes = ["dot", "convolution"]\nmode = "some"'
        )
    )
    assert settings.enabled == ("HLO201", "HLO301")
    assert settings.fail_on is None
    assert settings.min_saving == 0.025
    assert settings.chip == "v6e"
    assert settings.source_root == in_directory / "src"
    assert settings.baseline == in_directory / "known.json"
    assert settings.show_notes
    assert settings.library_paths == ("*/vendor/*",)
    assert settings.own_paths == ("*/mine/*",)
    (ignore,) = settings.op_ignores
    assert (ignore.glob, ignore.rules, ignore.reason) == (
        "*/attention/*",
        ("HLO301",),
        "heads of 64",
    )
    assert ignore.line == 12
    assert settings.rule_options == {
        "padding-waste": {"min_waste": 1.0, "max_reported": 3, "deep": True},
        "mxu-underuse": {"opcodes": ("dot", "convolution"), "mode": "some"},
    }


def test_an_option_replaces_its_key() -> None:
    settings = load(
        table('select = ["HLO201"]\nfail-on = "error"\nshow-notes = true'),
        select=("HLO301",),
        fail_on="note",
        min_saving=50.0,
    )
    assert settings.enabled == ("HLO301",)
    assert settings.fail_on == Severity.NOTE
    assert settings.notes_shown
    assert settings.min_saving == 0.5
    assert settings.show_notes


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('\nfail_on = "error"', 3, "unknown key `fail_on`; did you mean `fail-on`?"),
        ("nonsense = 1", 2, "unknown key `nonsense`"),
        ('ignore = ["padding-wast"]', 2, "unknown rule `padding-wast`; did you mean `padding-was"),
        ('select = ["HLO999"]', 2, "unknown rule `HLO999`"),
        ('select = [""]', 2, "unknown rule ``"),
        ('select = "HLO301"', 2, "`select` must be a list of strings"),
        ('fail-on = "eror"', 2, "unknown severity `eror`; did you mean `error`?"),
        ("min-saving = 101", 2, "not between 0 and 100"),
        ("min-saving = nan", 2, "must be finite"),
        ("min-saving = true", 2, "must be a number"),
        ('show-notes = "yes"', 2, "must be `true` or `false`"),
        ("chip = 5", 2, "must be a string"),
        ("rules = 1", 2, "must be a table"),
        ("op-ignores = [1]", 2, "must be an array of tables"),
        ("[tool.hlo-lint.rules.padding-wate]", 2, "unknown rule `padding-wate`; did you mean"),
        (
            "[tool.hlo-lint.rules.padding-waste]\nmin-wast = 1",
            3,
            "unknown option of `padding-waste` `min-wast`; did you mean `min-waste`?",
        ),
        (
            "[tool.hlo-lint.rules.padding-waste]\nmax-reported = 0.5",
            3,
            "`max-reported` must be a whole number",
        ),
        (
            '[[tool.hlo-lint.op-ignores]]\nop-name = "x"\nrules = ["HLO301"]',
            2,
            "needs `reason`",
        ),
        (
            '[[tool.hlo-lint.op-ignores]]\nop-name = "x"\nrules = ["HLO301"]\nreason = " "',
            5,
            "says something",
        ),
        (
            '[[tool.hlo-lint.op-ignores]]\nop-name = "x"\nrules = ["HLO301"]\nreason = "y"\n'
            '[[tool.hlo-lint.op-ignores]]\nop-name = "x"\nrules = ["HLO3O1"]\nreason = "y"',
            8,
            "unknown rule `HLO3O1`; did you mean `HLO301`?",
        ),
    ],
)
def test_a_mistake_is_reported_where_it_stands(text: str, line: int, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(table(text))
    assert message in caught.value.message
    assert caught.value.line == line
    assert caught.value.path is not None
    assert caught.value.path.endswith("pyproject.toml")


def test_text_that_is_not_toml_is_reported_with_its_line() -> None:
    with pytest.raises(SettingsError, match="not TOML") as caught:
        load(table("a = 1\nb = "))
    assert (caught.value.line, caught.value.column) == (3, 5)


@given(st.binary(max_size=200))
def test_any_bytes_are_settings_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("config") / "hlo-lint.toml"
    path.write_bytes(data)
    try:
        load_settings(path, Overrides(), RULES)
    except SettingsError as error:
        assert error.path == str(path)


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    with pytest.raises(SettingsError):
        load("a = " + "[" * 100_000, name="deep.toml")


def test_the_nearest_table_is_found_upwards(
    in_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `pyproject.toml` without the table is passed over, as a package inside a repository."""
    (in_directory / "pyproject.toml").write_text(table('chip = "v4"'))
    inner = in_directory / "packages" / "one"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[project]\nname = 'one'\n")
    monkeypatch.chdir(inner)
    settings = load()
    assert settings.chip == "v4"
    assert settings.source_root == in_directory


@pytest.mark.parametrize("text", ['chip = "v4"', table('chip = "v4"')])
def test_an_explicit_file_may_be_bare(text: str) -> None:
    assert load(text, name="lint.toml").chip == "v4"


def test_an_explicit_pyproject_needs_the_table(in_directory: Path) -> None:
    path = in_directory / "pyproject.toml"
    path.write_text("[project]\n")
    with pytest.raises(SettingsError, match=r"has no table `\[tool.hlo-lint\]`"):
        load_settings(path, Overrides(), RULES)


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(Path("none.toml"), Overrides(), RULES)


@pytest.mark.parametrize(
    ("select", "ignore"),
    [(("HLO301",), ("HLO301",)), (("HLO301",), ("padding-waste",)), (("HLO301",), ("HLO3",))],
)
def test_selecting_and_ignoring_the_same_rule_contradict(
    select: tuple[str, ...], ignore: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError, match="both selected and ignored"):
        load(select=select, ignore=ignore)


def test_a_family_may_be_selected_with_an_exception() -> None:
    assert load(select=("HLO3",), ignore=("HLO301",)).enabled == ("HLO302",)
