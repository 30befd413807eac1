"""Writes the notebooks of this folder as .ipynb, for Jupyter without Jupytext.

    python crates/lstep-py/notebooks/ipynb.py FOLDER

The scripts are what is kept: a change of them can be read as a change of text, and tests run them
cell by cell. VS Code, PyCharm, Spyder and Jupytext open them as they are.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def notebooks():
    """The scripts."""
    return sorted(path for path in HERE.glob("*.py") if path != Path(__file__))


def cells(path):
    """The cells of a script: pairs of a kind, ``markdown`` or ``code``, and its lines."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# %%"):
            found.append(("markdown" if "[markdown]" in line else "code", []))
        elif found[-1][0] == "markdown":
            found[-1][1].append(line.removeprefix("#").removeprefix(" "))
        else:
            found[-1][1].append(line)
    return [(kind, "\n".join(lines).strip("\n")) for kind, lines in found]


def notebook(path):
    """A script as a notebook of format 4.5, without outputs."""

    def cell(number, kind, text):
        made = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        made["source"] = text.splitlines(keepends=True)
        return made if kind == "markdown" else {**made, "execution_count": None, "outputs": []}

    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [cell(number, *one) for number, one in enumerate(cells(path))],
        "metadata": {"kernelspec": python, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    for path in notebooks():
        out = folder / f"{path.stem}.ipynb"
        out.write_text(json.dumps(notebook(path), indent=1) + "\n", encoding="utf-8")
        print(out)
