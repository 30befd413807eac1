"""The first example of the README, in an environment that has numpy and nothing else."""

from pathlib import Path

import lstep

README = Path(__file__).parent.parent / "README.md"


def main():
    example = README.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    names = {}
    exec(compile(example, str(README), "exec"), names)
    stream = names["stream"]
    print(stream.inspect())
    lstep.audit(names["Counts"], stream).raise_if_broken()
    model = lstep.train(stream, "heuristics", progress=False)
    assert len(model.top_k([3], 5)) == 5
    for engine, name in ((lstep.spark, "pyspark"), (lstep.ray, "ray")):
        try:
            engine.score({}, model)
        except lstep.MissingPackageError as error:
            assert f"pip install {name}" in str(error), error
        else:
            raise AssertionError(f"{name} is not missed")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
