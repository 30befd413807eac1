"""Streams and the command for the tests."""

import os
import shutil

import numpy as np
import pytest

import lstep


@pytest.fixture(scope="session")
def columns():
    """People who mostly write to those they know; two letters at every time."""
    draw = np.random.default_rng(0)
    count = 4_000
    source = draw.integers(0, 150, count)
    destination = 150 + (source * 7 + draw.integers(0, 4, count)) % 200
    return source, destination, np.arange(count) // 2 * 1.0


@pytest.fixture(scope="session")
def stream(columns):
    return lstep.Stream(*columns, name="letters")


@pytest.fixture(scope="session")
def small_audit():
    """How much an audit asks in a test."""
    return {"step": 100, "steps": 3, "rows": 40, "candidates": 11, "progress": False}


@pytest.fixture(scope="session")
def command():
    """The command, if the environment or the path has one."""
    found = os.environ.get("LSTEP_COMMAND") or shutil.which("lstep")
    if not found:
        pytest.skip("the command lstep is not there: set LSTEP_COMMAND to it")
    return found
