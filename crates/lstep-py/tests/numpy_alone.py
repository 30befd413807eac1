"""The first example of the guide, in an environment that has numpy and nothing else."""

import numpy as np

import lstep


class Counts:
    """How often a source and a candidate have met before."""

    def score(self, past, queries):
        sources, candidates, times = queries.pairs()
        met, last = past.met(sources, candidates, times)
        return met

    def observe(self, events):
        pass


def main():
    draw = np.random.default_rng(0)
    source = draw.integers(0, 50, 2_000)
    stream = lstep.Stream(source, 50 + source * 3 % 20, np.arange(2_000), name="letters")
    print(stream.inspect())
    print(lstep.evaluate(stream, ["edgebank", Counts], protocol="dyglib"))
    print(lstep.audit(Counts, stream).raise_if_broken())
    for engine, name in ((lstep.spark, "pyspark"), (lstep.ray, "ray")):
        try:
            engine.score({}, lstep.train(stream, "heuristics", progress=False))
        except lstep.MissingPackageError as error:
            assert f"pip install {name}" in str(error), error
        else:
            raise AssertionError(f"{name} is not missed")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
