# %% [markdown]
# # From a table to predictions
#
# An engineer has a table of who bought what and when, and wants to know what comes next. Open this
# file in VS Code: the `%%` lines are cells. `ipynb.py` beside it makes notebooks for Jupyter.

# %%
import numpy as np

import lstep

draw = np.random.default_rng(7)
count = 6_000
user = draw.integers(0, 120, count)
item = (user * 5 + draw.integers(0, 6, count)) % 90
table = {
    "user": np.array([f"user-{n}" for n in range(120)])[user],
    "item": np.array([f"item-{n}" for n in range(90)])[item],
    "when": np.datetime64("2026-01-01", "s") + np.arange(count) * 600,
}

# %% [markdown]
# Any table with named columns will do: pandas, polars, Arrow, or a dict of arrays.

# %%
stream = lstep.Stream.from_table(table, src="user", dst="item", time="when", name="shop")
stream.inspect()

# %% [markdown]
# Counting models need no training and are hard to beat, so they come first.

# %%
lstep.evaluate(stream, ["edgebank", "poptrack"], negatives="random")

# %%
model = lstep.train(stream, epochs=1, step=200)
found = model.evaluate(baselines=True)
print(found.best("mrr"))
found

# %% [markdown]
# The whole report, as the command writes it to `report.html`.

# %%
model.report()

# %% [markdown]
# Pairs are scored by name. A source that nobody has seen is a newcomer.

# %%
scores = model.score(["user-3", "user-3", "a stranger"], ["item-15", "item-70", "item-15"])
scores

# %%
top = model.top_k(["user-3", "user-4"], k=5, explain=True)
assert len(top) == 10
top

# %% [markdown]
# When something has happened, the model observes it, and answers from then on.

# %%
model.observe(["user-3"], ["item-70"], [table["when"][-1] + np.timedelta64(1, "h")])
model.save("shop.lstep")
again = lstep.load("shop.lstep")
assert again.score(["user-3"], ["item-70"])[0] == model.score(["user-3"], ["item-70"])[0]
