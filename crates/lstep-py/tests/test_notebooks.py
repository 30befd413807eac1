"""The notebooks run cell by cell, and what a cell ends with can be shown."""

import ast
import json
import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parent.parent / "notebooks" / "ipynb.py"))


@pytest.mark.parametrize("path", TOOL["notebooks"](), ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_its_results(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, shown = {"__name__": "__main__"}, 0
    try:
        for kind, text in TOOL["cells"](path):
            if kind == "markdown":
                continue
            body = ast.parse(text, str(path)).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), str(path), "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
                if hasattr(value, "_repr_html_"):
                    assert value._repr_html_().startswith("<")
                    shown += 1
    except SystemExit as skipped:
        pytest.skip(str(skipped))
    assert shown, "a notebook shows something"


def test_there_are_three_and_jupyter_takes_them():
    paths = TOOL["notebooks"]()
    assert len(paths) == 3
    for path in paths:
        made = json.loads(json.dumps(TOOL["notebook"](path)))
        code = ["".join(c["source"]) for c in made["cells"] if c["cell_type"] == "code"]
        assert [text for kind, text in TOOL["cells"](path) if kind == "code"] == code
        assert made["cells"][0]["source"][0].startswith("# ")
        nbformat = pytest.importorskip("nbformat", reason="nbformat checks notebooks")
        nbformat.validate(made)
