"""Models that cheat, each with the laws that find it, and their honest twin."""

import threading
import time

import numpy as np


class Honest:
    """Counts how often a source and a candidate have met."""

    def score(self, past, queries):
        return past.met(*queries.pairs())[0].astype(float)

    def observe(self, events):
        pass


class Stateful(Honest):
    """The same from a state of its own."""

    def __init__(self):
        self.met = {}

    def reset(self):
        self.met = {}

    def score(self, past, queries):
        sources, destinations, _ = queries.pairs()
        pairs = zip(sources.tolist(), destinations.tolist())
        return np.array([self.met.get(pair, 0) for pair in pairs], dtype=float)

    def observe(self, events):
        for pair in zip(events.sources.tolist(), events.destinations.tolist()):
            self.met[pair] = self.met.get(pair, 0) + 1


class Saved(Stateful):
    """The same with a weight that is saved and loaded."""

    def __init__(self, weight=2.0):
        super().__init__()
        self.weight = weight

    def score(self, past, queries):
        return self.weight * super().score(past, queries)

    def save(self, path):
        path.write_text(repr(self.weight))

    def load(self, path):
        self.weight = float(path.read_text())


class Learned(Honest):
    """Learns from the training events how much a meeting is worth."""

    def __init__(self):
        self.weight = 1.0

    def train(self, past, batches):
        met = unmet = 1.0
        for _ in range(2):
            for batch in batches:
                assert len(batch.negative_destinations) == len(batch)
                met += past.met(batch.sources, batch.destinations, batch.times)[0].sum()
                false = batch.negative_sources, batch.negative_destinations, batch.times
                unmet += past.met(*false)[0].sum()
        self.weight = met / (met + unmet)

    def score(self, past, queries):
        return self.weight * super().score(past, queries)


class NodeTable(Honest):
    """Learns a number for each node, so it knows nodes by their numbers."""

    def __init__(self):
        self.popular = {}

    def train(self, past, batches):
        for batch in batches:
            for node in batch.destinations.tolist():
                self.popular[node] = self.popular.get(node, 0) + 1

    def score(self, past, queries):
        _, destinations, _ = queries.pairs()
        return super().score(past, queries) + [self.popular.get(n, 0) for n in destinations]


class Clock(Honest):
    def score(self, past, queries):
        return super().score(past, queries) + (time.perf_counter_ns() % 1009) / 1009


class Forgetful(Saved):
    """Does not save its weight."""

    def load(self, path):
        self.weight = 1.0


class ByThread(Honest):
    """Knows which thread asks it."""

    def __init__(self):
        self.home = threading.get_ident()

    def __deepcopy__(self, memo):
        other = ByThread()
        other.home = self.home
        return other

    def score(self, past, queries):
        return super().score(past, queries) + (threading.get_ident() != self.home)


class First(Honest):
    """The first candidate is the true one."""

    def score(self, past, queries):
        scores = super().score(past, queries)
        scores[queries.offsets[:-1]] += 1
        return scores


class OfTwo(Honest):
    """Rows of exactly two are special."""

    def score(self, past, queries):
        lengths = np.diff(queries.offsets)
        return super().score(past, queries) + np.repeat(lengths == 2, lengths)


class Normalised(Honest):
    """Scores are normalised over the call."""

    def score(self, past, queries):
        scores = super().score(past, queries)
        return (scores - scores.mean()) / (scores.std() + 1e-9)


class Peeks(Honest):
    """Knows who else is asked about, as the released L-STEP did with true events."""

    def score(self, past, queries):
        _, destinations, _ = queries.pairs()
        nodes, counts = np.unique(destinations, return_counts=True)
        return super().score(past, queries) + counts[np.searchsorted(nodes, destinations)]


class LooksAhead(Honest):
    """Asks the past at the latest time of the call, whatever the row's own time is."""

    def score(self, past, queries):
        sources, destinations, times = queries.pairs()
        return past.met(sources, destinations, np.full_like(times, times.max()))[0].astype(float)


class Prepared(Honest):
    """Takes statistics of the whole stream before it starts."""

    def prepare(self, events):
        self.popular = np.bincount(events.destinations, minlength=10_000)

    def score(self, past, queries):
        _, destinations, _ = queries.pairs()
        return super().score(past, queries) + 0.1 * self.popular[destinations % 10_000]


class Numbers(Honest):
    """Newcomers have the next number."""

    def score(self, past, queries):
        _, destinations, _ = queries.pairs()
        return super().score(past, queries) + 1e-2 * destinations


class LearnsWhileAsked(Stateful):
    """Counts the questions, too."""

    def score(self, past, queries):
        scores = super().score(past, queries)
        sources, destinations, _ = queries.pairs()
        for pair in zip(sources.tolist(), destinations.tolist()):
            self.met[pair] = self.met.get(pair, 0) + 1
        return scores


class Shared(Honest):
    """Remembers in the class what any of its objects has observed."""

    met = {}

    def score(self, past, queries):
        sources, destinations, _ = queries.pairs()
        pairs = zip(sources.tolist(), destinations.tolist())
        return np.array([float(pair in Shared.met) for pair in pairs])

    def observe(self, events):
        for pair in zip(events.sources.tolist(), events.destinations.tolist()):
            Shared.met[pair] = True


class Table(Honest):
    """Has a table with a row for each node it knows, and no row for others."""

    def score(self, past, queries):
        _, destinations, _ = queries.pairs()
        table = np.zeros(400)
        return super().score(past, queries) + table[destinations]


HONEST = [Honest, Stateful, Saved, Learned]

CHEATS = [
    (Clock, ["again"]),
    (Forgetful, ["reopening"]),
    (ByThread, ["threads"]),
    (First, ["place"]),
    (OfTwo, ["row-length"]),
    (Normalised, ["split", "other-rows", "live"]),
    (Peeks, ["other-rows", "live"]),
    (LooksAhead, ["future", "live"]),
    (Prepared, ["future", "after-training"]),
    (Numbers, ["names"]),
    (NodeTable, ["names"]),
    (LearnsWhileAsked, ["scoring"]),
    (Shared, ["again", "own-state"]),
    (Table, ["unseen"]),
]
