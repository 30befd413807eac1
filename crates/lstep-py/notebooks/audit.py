# %% [markdown]
# # Auditing a PyTorch model
#
# A small model after GraphMixer passes. The same model with two habits of released code does not:
# padding to the longest history of a call, and looking at who else is asked about.

# %%
import numpy as np

import lstep

try:
    import torch
except ImportError:
    raise SystemExit("PyTorch is not installed: this notebook is not run") from None

draw = np.random.default_rng(1)
ends = draw.integers(0, 100, (2, 4_000))
stream = lstep.Stream(*ends, np.arange(4_000), name="meetings")


# %%
class Mixer(torch.nn.Module):
    """The newest neighbours of both sides, encoded by their age."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.ages = torch.nn.Linear(8, 8)
        self.mix = torch.nn.Linear(8 * 64, 16)
        self.head = torch.nn.Linear(32, 1)

    def encode(self, past, nodes, times):
        neighbours, at, _ = past.recent(nodes, times, 64)
        known = torch.as_tensor(neighbours >= 0)
        ages = torch.as_tensor(times[:, None] - at, dtype=torch.float32)
        waves = torch.cos(ages[..., None] * 10.0 ** -torch.arange(8.0))
        return self.mix((self.ages(waves) * known[..., None]).flatten(1)), known

    @torch.no_grad()
    def score(self, past, queries):
        sources, candidates, times = queries.pairs()
        left, _ = self.encode(past, sources, times)
        right, _ = self.encode(past, candidates, times)
        return self.head(torch.cat([left, right], dim=1))

    def observe(self, events):
        pass


# Half a minute is too long to wait for, so fewer questions are asked than by default.
few = {"rows": 40, "candidates": 21}
honest = lstep.audit(Mixer(), stream, **few)
honest.raise_if_broken()
honest

# %% [markdown]
# `largest change` is what PyTorch's rounding does to a score, as a share of its row's spread. It
# is no leak.


# %%
class Padded(Mixer):
    """Divides by the longest history of the call, as a mean over padded batches does."""

    def encode(self, past, nodes, times):
        rows, known = super().encode(past, nodes, times)
        return rows / known.sum(1).max().clamp(min=1), known


class Filtered(Mixer):
    """Treats nodes otherwise if they are among the candidates of the call."""

    def score(self, past, queries):
        sources, candidates, _ = queries.pairs()
        asked = torch.as_tensor(np.isin(sources, candidates))
        return super().score(past, queries)[:, 0] - asked.float()


for leaky in (Padded, Filtered):
    found = lstep.audit(leaky(), stream, **few)
    assert {"split", "other-rows"} <= set(found.broken)
    print(leaky.__name__)
    print(found["other-rows"].explain())
