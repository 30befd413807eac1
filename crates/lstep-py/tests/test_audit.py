"""Every law is broken by some model of Python, and kept by honest ones."""

import numpy as np
import pytest
from models import CHEATS, HONEST, Honest, Normalised, Peeks

import lstep


@pytest.mark.parametrize("model", HONEST, ids=lambda model: model.__name__)
def test_an_honest_model_keeps_every_law(model, stream, small_audit):
    found = lstep.audit(model, stream, **small_audit)
    assert found.broken == [], found.explain()
    assert found and found.raise_if_broken() is found


@pytest.mark.parametrize(("model", "laws"), CHEATS, ids=lambda case: getattr(case, "__name__", ""))
def test_a_cheat_is_caught_by_name_of_the_law(model, laws, stream, small_audit):
    found = lstep.audit(model, stream, **small_audit)
    assert set(laws) <= set(found.broken), str(found)
    with pytest.raises(AssertionError, match=laws[0]):
        found.raise_if_broken()


def test_every_law_is_broken_by_some_cheat():
    broken = {law for _, laws in CHEATS for law in laws}
    assert len(broken) == 14, broken


def test_a_leak_is_shown_by_the_smallest_call_and_by_ids(columns, small_audit):
    source, destination, time = columns
    names = np.array([f"person-{n}" for n in range(400)])
    stream = lstep.Stream(names[source], names[destination], time)
    found = lstep.audit(Peeks, stream, **small_audit)["other-rows"]
    context = found.example["context"]
    assert len(context["call"]) == 2
    assert context["together"] == context["alone"] + 1
    for row in context["call"]:
        assert row["candidates"] == [found.example["destination"]]
        assert row["source"].startswith("person-")
    assert "if it is asked alone" in found.explain()


def test_rounding_is_no_leak_but_is_said(stream, small_audit):
    class Rounds(Honest):
        def __init__(self, share):
            self.share = share

        def score(self, past, queries):
            return super().score(past, queries) + self.share * len(queries)

    # Scores have a spread of a few; a call has up to 40 rows.
    found = lstep.audit(Rounds(1e-6), stream, **small_audit)
    assert found.broken == []
    assert found["split"].verdict == "not bit-exact"
    assert 1e-6 < found["split"].largest_change < 1e-3
    assert found["split"].rounded > 0
    found = lstep.audit(Rounds(1e-12), stream, **small_audit)
    assert found["split"].verdict == "kept"
    found = lstep.audit(Rounds(1e-2), stream, **small_audit)
    assert "split" in found.broken
    found = lstep.audit(Rounds(1e-6), stream, tolerance=0.0, **small_audit)
    assert "split" in found.broken


def test_what_a_model_lacks_is_not_checked(stream, small_audit):
    found = lstep.audit(Honest, stream, **small_audit)
    assert found["reopening"].verdict == "not checked"
    assert found["after-training"].verdict == "not checked"
    assert "save" in found["reopening"].why


def test_models_of_the_library_are_compared_to_the_bit(stream, small_audit):
    found = lstep.audit("edgebank", stream, **small_audit)
    assert found and all(law.verdict == "kept" for law in found.laws)
    assert found.report["tolerance"] == 0


def test_a_function_of_pairs_is_checked_as_it_is(stream, small_audit):
    def fixed(sources, destinations, times):
        return (sources * 31 + destinations) % 17 / 17

    def padded(sources, destinations, times):
        return fixed(sources, destinations, times) + len(sources) / 100

    found = lstep.leak_check(fixed, stream, **small_audit)
    assert found and found["future"].verdict == "not checked"
    found = lstep.leak_check(padded, stream, **small_audit)
    assert "split" in found.broken and found.report["model"] == "padded"


def test_a_function_built_from_all_events_may_not_use_later_ones(stream, small_audit):
    def build(honest):
        def of_events(sources, destinations, times):
            def score(left, right, at):
                scores = []
                for source, destination, time in zip(left, right, at):
                    meets = (sources == source) & (destinations == destination)
                    scores.append((meets & (times < time)).sum() if honest else meets.sum())
                return np.array(scores, dtype=float)

            return score

        return of_events

    few = {**small_audit, "rows": 10, "candidates": 2, "events": 1_500}
    assert lstep.leak_check(None, stream, build=build(True), **few)
    assert "future" in lstep.leak_check(None, stream, build=build(False), **few).broken


def test_an_audit_is_a_table(stream, small_audit):
    found = lstep.audit(Normalised, stream, **small_audit)
    assert len(found) == 14 and "split" in found.to_latex()
    assert "<td>BROKEN</td>" in found._repr_html_() and "BROKEN" in repr(found)


class TestPyTorch:
    """Worked examples in PyTorch."""

    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch", reason="PyTorch is not installed")

    def mixer(self, torch, pads_to_longest=False, filters_true=False):
        """A small model after GraphMixer: the newest neighbours of both sides, encoded."""

        class Mixer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.time = torch.nn.Linear(8, 8)
                self.mix = torch.nn.Linear(8 * 64, 16)
                self.head = torch.nn.Linear(33, 1)

            def encode(self, past, nodes, times, pad):
                recent, at, _ = past.recent(nodes, times, 64)
                known = torch.as_tensor(recent >= 0)
                gaps = torch.as_tensor(times[:, None] - at, dtype=torch.float32)
                waves = torch.cos(gaps[..., None] * 10.0 ** -torch.arange(8.0))
                waves = self.time(waves) * known[..., None]
                rows = self.mix(waves.flatten(1))
                return rows / known.sum(1).max().clamp(min=1) if pad else rows

            def logits(self, past, sources, destinations, times):
                left = self.encode(past, sources, times, pads_to_longest)
                right = self.encode(past, destinations, times, pads_to_longest)
                met = torch.as_tensor(past.met(sources, destinations, times)[0])
                both = torch.cat([left, right, met[:, None].float()], dim=1)
                return self.head(both)[:, 0]

            @torch.no_grad()
            def score(self, past, queries):
                sources, destinations, times = queries.pairs()
                scores = self.logits(past, sources, destinations, times)
                if filters_true:
                    asked = torch.as_tensor(np.isin(sources, destinations))
                    scores = scores - asked.float()
                return scores

            def observe(self, events):
                pass

        return Mixer()

    def test_an_honest_mixer_passes_although_it_rounds(self, torch, stream, small_audit):
        found = lstep.audit(self.mixer(torch), stream, **small_audit)
        assert found.broken == [], found.explain()

    def test_a_mixer_that_learns_from_its_batches_passes(self, torch, stream, small_audit):
        """A module has a ``train(mode)`` of its own, so the hook stands in a class around it."""

        class Learned:
            name = "mixer"

            def __init__(self):
                self.network = TestPyTorch().mixer(torch)

            def train(self, past, batches):
                steps = torch.optim.Adam(self.network.parameters(), lr=1e-2)
                for _ in range(2):
                    for batch in batches:
                        ends = [batch.sources, batch.negative_sources]
                        others = [batch.destinations, batch.negative_destinations]
                        logits = self.network.logits(
                            past, np.concatenate(ends), np.concatenate(others),
                            np.concatenate([batch.times, batch.times]),
                        )
                        labels = torch.arange(len(logits)) < len(batch)
                        loss = torch.nn.functional.binary_cross_entropy_with_logits(
                            logits, labels.float()
                        )
                        steps.zero_grad()
                        loss.backward()
                        steps.step()

            def score(self, past, queries):
                return self.network.score(past, queries)

            def observe(self, events):
                pass

        asked = {"negatives": "random", "progress": False}
        untrained, trained = lstep.evaluate(stream, [self.mixer(torch), Learned], **asked)
        assert trained["ap"] > untrained["ap"] + 0.05 and trained["model"] == "mixer"
        found = lstep.audit(Learned, stream, **small_audit)
        assert found.broken == [] and found["after-training"].compared > 0, found.explain()

    def test_scores_of_any_precision_are_taken(self, torch, stream):
        class Short:
            def __init__(self, kind):
                self.kind = kind

            def score(self, past, queries):
                return torch.ones(len(queries.candidates), requires_grad=True).to(self.kind)

            def observe(self, events):
                pass

        for kind in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            found = lstep.evaluate(stream, Short(kind), negatives="random", progress=False)
            assert found[0]["auc"] == 0.5

    def test_padding_to_the_longest_of_a_call_is_caught(self, torch, stream, small_audit):
        found = lstep.audit(self.mixer(torch, pads_to_longest=True), stream, **small_audit)
        assert {"split", "other-rows"} <= set(found.broken)

    def test_filtering_by_who_is_asked_is_caught(self, torch, small_audit):
        draw = np.random.default_rng(1)
        ends = draw.integers(0, 100, (2, 4_000))
        stream = lstep.Stream(*ends, np.arange(4_000))
        found = lstep.audit(self.mixer(torch, filters_true=True), stream, **small_audit)
        assert {"split", "other-rows"} <= set(found.broken)
