"""Pages that are made when `mkdocs` builds the site: of rules, the README, how to contribute.

A rule's page is what `hlo-lint --explain` prints, with the defect as planted in a program, compiled
by the TPU compiler, and linted now: the message, the line of the dump, and the step without it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import hlo_tools
from hlo_tools.io import ModuleText, read_inputs
from passes.catalog import RULES
from passes.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
PLANTED = ROOT / "fixtures" / "planted"
# Characters of a line of a dump.
_WIDEST = 400


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the rules into the navigation."""
    pages = [{f"{rule.id} {rule.name}": f"rules/{rule.id}.md"} for rule in RULES]
    assert config.nav is not None
    config.nav.insert(2, {"Rules": [{"All rules": "rules/index.md"}, *pages]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    made = {
        "index.md": _moved("README.md"),
        "contributing.md": _moved("CONTRIBUTING.md"),
        "rules/index.md": "\n".join(_index()),
    }
    pairs = _pairs()
    for rule in RULES:
        made[f"rules/{rule.id}.md"] = "\n".join(_page(rule, pairs.get(rule.id)))
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to what lies outside of the folder lead to its page."""
    return markdown.replace("](../CONTRIBUTING.md", "](contributing.md")


def _moved(name: str) -> str:
    """A page from beside the folder, with links as from inside it."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md", "](contributing.md")


def _index() -> Iterator[str]:
    yield from ("# Rules", "", "| rule | finds |", "|---|---|")
    for rule in RULES:
        yield f"| [{rule.id} {rule.name}]({rule.id}.md) | {rule.summary} |"


def _page(rule: Rule, pair: str | None) -> Iterator[str]:
    yield from (f"# {rule.id} {rule.name}", "")
    summary, _, rest = rule.documentation.partition("\n")
    yield from (summary, "")
    for heading, lines in _sections(rest):
        code = heading in ("Example", "Use instead")
        yield from (f"## {heading}", "", *(["```python"] if code else []))
        yield from lines
        yield from ([*(["```"] if code else []), ""])
    if pair is not None:
        yield from _example(rule, pair)


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The headings of a rule's documentation, each with what stands below it."""
    heading, lines = "", []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            if heading:
                yield heading, lines
            heading, lines = line, []
        elif heading:
            lines.append(line.removeprefix("  "))
    if heading:
        yield heading, lines


def _pairs() -> dict[str, str]:
    """For each rule the first planted pair, without `_bad` and `_good`."""
    found: dict[str, str] = {}
    for name, case in _manifest().items():
        if not case["good"]:
            found.setdefault(case["rule"], name.removesuffix("_bad"))
    return found


def _manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((PLANTED / "MANIFEST.json").read_text(encoding="utf-8"))
    return manifest


def _example(rule: Rule, pair: str) -> Iterator[str]:
    manifest = _manifest()
    bad, good = (manifest.get(f"{pair}_{kind}") for kind in ("bad", "good"))
    if bad is None or good is None:
        return
    dump = PLANTED / bad["file"]
    chip = bad["topology"].partition(":")[0].replace("tpu7x", "7x")
    result = hlo_tools.lint(dump, chip=chip)
    own = [each for each in result.findings if each.id == rule.id]
    if not own:
        return  # of programs that do not fit into memory there is no dump to look at
    finding, line = own[0], bad["expect"]["line"]
    source = (ROOT / bad["program"]).read_text(encoding="utf-8").splitlines()
    (module,) = read_inputs([str(dump)])
    assert isinstance(module, ModuleText)
    lines = module.text.splitlines()
    instruction = lines[finding.hlo_line - module.start_line].strip()
    yield from ("## As the compiler shows it", "")
    yield from (f"`{bad['program']}`, compiled for `{bad['topology']}`:", "", "```python")
    yield from source[max(0, line - 4) : line + 2]
    yield from ("```", "", f"`{dump.name}`:", "", "```")
    yield instruction if len(instruction) <= _WIDEST else f"{instruction[:_WIDEST]} ..."
    yield from ("```", "", "What the rule says:", "")
    yield from (f"> {finding.message}", ">", f"> fix: {finding.fix}", "")
    repaired = hlo_tools.lint(PLANTED / good["file"], chip=chip)
    yield (
        f"The modelled step takes {result.step_seconds}, and {repaired.step_seconds} as "
        f"`{good['function']}` of the same file is written, where the rule is silent."
    )
