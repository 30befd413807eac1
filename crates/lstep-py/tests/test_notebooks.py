"""The notebooks run from the first cell to the last."""

import runpy
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(path))
    except SystemExit as skipped:
        pytest.skip(str(skipped))


def test_there_are_three():
    assert len(NOTEBOOKS) == 3
