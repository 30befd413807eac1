"""Objects of PyTorch Geometric and of TGB, known by what they have."""

import os

import numpy as np
import pytest

import lstep

SOURCES, DESTINATIONS, TIMES = [0, 1, 0], [2, 2, 3], [5, 6, 6]
MESSAGES = np.array([[0.5, 1.0], [2.0, 3.0], [0.0, 0.25]], dtype=np.float32)


def check(stream, name):
    assert stream.name == name and stream.features.tolist() == MESSAGES.tolist()
    assert stream.sources.tolist() == SOURCES and stream.times.tolist() == TIMES


def test_what_looks_like_temporal_data_is_taken():
    class TemporalData:
        src, dst, t = np.array(SOURCES), np.array(DESTINATIONS), np.array(TIMES)
        msg = MESSAGES

    check(lstep.Stream.from_pyg(TemporalData()), "temporal-data")
    TemporalData.msg = None
    assert lstep.Stream.from_pyg(TemporalData()).features.shape == (3, 0)


def test_what_looks_like_a_dataset_of_tgb_is_taken():
    class LinkPropPredDataset:
        name = "tgbl-wiki"
        node_feat = np.arange(8.0).reshape(4, 2)
        full_data = {
            "sources": np.array(SOURCES),
            "destinations": np.array(DESTINATIONS),
            "timestamps": np.array(TIMES),
            "edge_feat": MESSAGES,
        }

    stream = lstep.Stream.from_tgb(LinkPropPredDataset())
    check(stream, "tgbl-wiki")
    assert stream.node_features.tolist() == LinkPropPredDataset.node_feat[stream.ids].tolist()


def test_temporal_data_of_pyg_is_taken_with_its_messages():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    columns = {"src": SOURCES, "dst": DESTINATIONS, "t": TIMES}
    given = {name: torch.tensor(column) for name, column in columns.items()}
    messages = torch.tensor(MESSAGES, requires_grad=True)
    temporal = data.TemporalData(**given, msg=messages)
    check(lstep.Stream.from_pyg(temporal), "temporal-data")
    features = torch.arange(8.0).reshape(4, 2)
    stream = lstep.Stream.from_pyg(temporal, node_features=features)
    assert stream.node_features.tolist() == features[stream.ids].tolist()
    assert lstep.Stream.from_pyg(data.TemporalData(**given)).features.shape == (3, 0)


def test_datasets_of_tgb_are_taken_with_their_features(tmp_path):
    dataset = pytest.importorskip("tgb.linkproppred.dataset")
    pyg = pytest.importorskip("tgb.linkproppred.dataset_pyg")
    draw = np.random.default_rng(0)
    header = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features"
    features = draw.random((300, 172)).round(3)
    ends = draw.integers(0, 20, 300), draw.integers(0, 10, 300)
    lines = [
        f"{source},{target},{float(row)},0," + ",".join(map(str, features[row]))
        for row, (source, target) in enumerate(zip(*ends))
    ]
    folder = tmp_path / "tgbl_wiki"
    folder.mkdir()
    (folder / "tgbl-wiki_edgelist_v2.csv").write_text("\n".join([header, *lines]) + "\n")
    # TGB puts its own folder before whatever is given.
    root = os.path.relpath(tmp_path, dataset.PROJ_DIR)
    for kind in (dataset.LinkPropPredDataset, pyg.PyGLinkPropPredDataset):
        stream = lstep.Stream.from_tgb(kind("tgbl-wiki", root=root, download=False))
        assert (stream.name, len(stream), stream.nodes) == ("tgbl-wiki", 300, 30)
        assert np.allclose(stream.features, features, atol=1e-6)
        assert stream.times.tolist() == list(range(300))
