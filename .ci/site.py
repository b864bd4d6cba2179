"""What the documentation's site has beside docs/: the pages at the root of the repository, and the reference.

A hook of MkDocs. Links are written as GitHub reads them; those between docs/ and the root work here as well.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
FROM_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "SECURITY.md": "reporting.md",  # docs/security.md has the name, where capitals do not count
    "CHANGELOG.md": "CHANGELOG.md",
}
PLUGINS = {
    "splits": ("rules",),
    "loaders": ("generators", "readers", "mirrors"),
    "benchmarks": ("metrics", "selection", "augmentations", "extraction", "adapters", "plot", "tables"),
    "baselines": ("networks", "algorithms", "optimisers", "schedules", "positions", "formats"),
    "leaderboard": ("exports", "contamination"),
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that docs/ does not hold."""
    pages = {path: (ROOT / name).read_text("utf-8") for name, path in FROM_ROOT.items()}
    pages |= {"api.md": build_api_page(), "plug-ins.md": build_plugin_page()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=rewrite_links(text)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """A page of docs/ links to one of the root as ../NAME; here they stand side by side."""
    return rewrite_links(markdown)


def rewrite_links(text: str) -> str:
    for name, path in FROM_ROOT.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}([)#])", rf"]({path}\1", text)
    return re.sub(r"\]\(docs/([\w/-]+\.(?:md|svg))", r"](\1", text)


def build_api_page() -> str:
    """A section for each public name, in the order of `farshift.__all__`."""
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    public = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    sections = [f"::: farshift.{name}" for name in public if name != "splits"]
    return "# The Python interface\n\n`import farshift as fs`\n\n" + "\n\n".join(
        [*sections, "::: farshift.loaders.part.Part", "::: farshift.benchmarks.model"]
    )


def build_plugin_page() -> str:
    """What a file of each plug-in folder gets and gives: the folder's own docstring."""
    lines = ["# Plug-ins", "", "Each is one file, in the package or in a folder named in `FARSHIFT_PATH`:"]
    lines += ["[Contributing](CONTRIBUTING.md) has an example of each.", ""]
    for room, folders in PLUGINS.items():
        for folder in folders:
            about = ast.get_docstring(ast.parse((ROOT / room / folder / "__init__.py").read_text("utf-8"))) or ""
            lines += [f"## {room}/{folder}", "", about, ""]
    return "\n".join(lines)
