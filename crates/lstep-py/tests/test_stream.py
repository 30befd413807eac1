"""Streams from every kind of table, and what is refused."""

import datetime
import pickle

import numpy as np
import pytest

import lstep

FROM = ["ann", "bob", "ann", "cid"]
TO = ["bob", "cid", "cid", "ann"]


def test_ids_come_back_as_they_were_given():
    text = lstep.Stream(["7", "8"], ["8", "9"], [1, 2])
    assert text.sources.tolist() == ["7", "8"]
    numbers = lstep.Stream([7, 8], [8, 9], [1, 2])
    assert numbers.sources.tolist() == [7, 8] and numbers.ids.dtype == np.int64
    mixed = lstep.Stream([7, 8], ["x", "y"], [1, 2])
    assert mixed.sources.tolist() == ["7", "8"]
    large = lstep.Stream(np.array([2**64 - 1, 1], dtype=np.uint64), [1, 2], [1, 2])
    assert large.sources.tolist() == [str(2**64 - 1), "1"]


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_dates_are_exact_in_every_unit(unit):
    times = np.array(["2021-03-04", "2021-03-05"], dtype=f"M8[{unit}]")
    found = lstep.Stream([1, 2], [2, 3], times).times
    assert (found == times).all() and found.dtype.kind == "M"


def test_times_may_be_integers_decimals_and_text():
    assert lstep.Stream([1, 2], [2, 3], [5, 7]).times.tolist() == [5, 7]
    assert lstep.Stream([1, 2], [2, 3], [0.5, 7]).times.tolist() == [0.5, 7.0]
    large = [1_700_000_000_123_456_789, 1_700_000_000_123_456_791]
    assert lstep.Stream([1, 2], [2, 3], large).times.tolist() == large
    moments = ["2021-03-04T00:00:00+01:00", "2021-03-04"]
    found = lstep.Stream([1, 2], [2, 3], moments).times
    assert found[0] == np.datetime64("2021-03-03T23:00:00")
    objects = [datetime.date(2021, 3, 4), datetime.datetime(2021, 3, 5, 12)]
    assert lstep.Stream([1, 2], [2, 3], objects).times[1] == np.datetime64("2021-03-05T12")


def tables():
    times = np.array(["2021-03-04", "2021-03-05", "2021-03-05", "2021-03-06T01:02:03.5"], "M8[ms]")
    columns = {"who": FROM, "whom": TO, "when": times, "weight": [1.0, 2.0, 3.0, 4.0]}
    yield "dict", lambda: columns
    for library in ("pandas", "polars", "pyarrow"):

        def made(library=library):
            module = pytest.importorskip(library)
            if library == "pyarrow":
                return module.table(columns)
            return module.DataFrame(columns)

        yield library, made

    def category():
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(columns).astype({"who": "category", "whom": "category"})

    def zoned():
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(columns)
        frame["when"] = frame["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
        return frame

    def zoned_polars():
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(columns)
        when = polars.col("when").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
        return frame.with_columns(when)

    def dictionary():
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table(columns)
        who = pyarrow.chunked_array([pyarrow.array(FROM[:1]), pyarrow.array(FROM[1:])])
        return table.set_column(0, "who", who.dictionary_encode())

    yield "pandas categories", category
    yield "pandas with a zone", zoned
    yield "polars with a zone", zoned_polars
    yield "pyarrow dictionary", dictionary


@pytest.mark.parametrize("table", [made for _, made in tables()], ids=[n for n, _ in tables()])
def test_the_same_table_of_any_library_is_the_same_stream(table):
    stream = lstep.Stream.from_table(table(), src="who", dst="whom", time="when", features="weight")
    assert stream.sources.tolist() == FROM and stream.destinations.tolist() == TO
    assert stream.times[3] == np.datetime64("2021-03-06T01:02:03.5")
    assert stream.features[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_integers_of_any_library_are_integers():
    for library in ("pandas", "polars", "pyarrow"):
        module = pytest.importorskip(library)
        columns = {"src": [3, 1], "dst": [1, 2], "time": [10, 20]}
        table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
        stream = lstep.Stream.from_table(table)
        assert stream.sources.tolist() == [3, 1] and stream.times.tolist() == [10, 20]


def test_a_stream_goes_back_into_tables():
    stream = lstep.Stream(FROM, TO, [1, 2, 3, 4], features=np.eye(4))
    for library in ("pandas", "polars"):
        if pytest.importorskip(library):
            frame = getattr(stream, f"to_{library}")()
            assert list(frame.columns)[:4] == ["src", "dst", "time", "f0"]
            assert list(frame["src"]) == FROM


def test_a_stream_is_pickled_and_inspected():
    stream = lstep.Stream(FROM, TO, np.array([1, 2, 2, 3], "M8[s]"), name="letters")
    again = pickle.loads(pickle.dumps(stream))
    assert again.sources.tolist() == FROM and (again.times == stream.times).all()
    assert again.name == "letters"
    assert stream.inspect()["nodes"] == 3 and "<td>nodes</td>" in stream._repr_html_()
    assert repr(stream) == "Stream('letters', 4 events, 3 nodes)"


def test_a_file_is_read_as_the_command_reads_it(tmp_path):
    path = tmp_path / "letters.csv"
    path.write_text("who,whom,third\nann,bob,2021-03-04\nbob,cid,2021-03-05\n")
    stream = lstep.read(path, src="who", dst="whom", time="third")
    assert stream.name == "letters" and stream.sources.tolist() == ["ann", "bob"]
    with pytest.raises(lstep.InputError, match="name it with time="):
        lstep.read(path, src="who", dst="whom")
    with pytest.raises(OSError, match="absent.csv"):
        lstep.read(tmp_path / "absent.csv")
    with pytest.raises(TypeError, match="unknown field `tme`"):
        lstep.read(path, tme="third")
    path.write_text("who,whom,third\nann,bob,04.03.2021 10:00\nbob,cid,05.03.2021 11:30\n")
    columns = {"src": "who", "dst": "whom", "time": "third"}
    stream = lstep.read(path, **columns, time_format="%d.%m.%Y %H:%M")
    assert stream.times[1] == np.datetime64("2021-03-05T11:30")


def test_a_file_with_faults_is_read_without_them_if_that_is_wished(tmp_path):
    path = tmp_path / "letters.csv"
    path.write_text("who;whom;when\nann;bob;1\nann;bob;1\nbob;cid;never\ncid;ann;3\n")
    columns = {"src": "who", "dst": "whom", "time": "when", "separator": ";"}
    stream = lstep.read(path, **columns, skip_bad=True, dedup=True)
    assert stream.sources.tolist() == ["ann", "cid"]
    left_out = stream.inspect()["left_out"]
    assert left_out["duplicates"] == 1 and left_out["faults"][0]["example"] == "never"
    with pytest.raises(lstep.InputError, match='column "when": "never" is not a time') as caught:
        lstep.read(path, **columns)
    assert "time=" in caught.value.remedy


class TestRefused:
    """Hostile input gives a clear exception with place, value and remedy."""

    def test_lengths_that_differ(self):
        with pytest.raises(lstep.InputError, match="sources and destinations: 2 and 1"):
            lstep.Stream([1, 2], [1], [1, 2])
        with pytest.raises(lstep.InputError, match="one row for each event"):
            lstep.Stream([1, 2], [1, 2], [1, 2], features=np.zeros((3, 1)))

    def test_no_time(self):
        with pytest.raises(lstep.InputError, match='row 1, column "time"') as caught:
            lstep.Stream([1, 2], [1, 2], np.array(["2021-03-04", "NaT"], "M8[s]"))
        assert (caught.value.row, caught.value.column) == (1, "time")
        with pytest.raises(lstep.InputError, match="finite"):
            lstep.Stream([1, 2], [1, 2], [1.0, np.nan])

    def test_times_that_go_back(self):
        with pytest.raises(lstep.InputError, match="sort=True") as caught:
            lstep.Stream([1, 2], [1, 2], [5, 4])
        assert caught.value.remedy == "sort the events by time or pass sort=True"
        stream = lstep.Stream([1, 2], [3, 4], [5, 4], sort=True)
        assert stream.sources.tolist() == [2, 1]

    def test_ids_that_are_none(self):
        with pytest.raises(lstep.InputError, match="not an id"):
            lstep.Stream([1.5, 2.5], [1, 2], [1, 2])
        with pytest.raises(lstep.InputError, match="row 1"):
            lstep.Stream(["a", None], ["b", "c"], [1, 2])
        with pytest.raises(lstep.InputError, match="dict"):
            lstep.Stream([{}, {}], ["b", "c"], [1, 2])
        with pytest.raises(lstep.InputError, match="shape"):
            lstep.Stream(np.zeros((2, 2), int), [1, 2], [1, 2])
        with pytest.raises(lstep.InputError, match="complex128"):
            lstep.Stream(np.array([1j, 2]), [1, 2], [1, 2])
        with pytest.raises(lstep.InputError, match="no events"):
            lstep.Stream([], [], [])

    def test_empty_cells_of_tables(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"src": ["a", None], "dst": ["b", "c"], "time": [1, 2]})
        with pytest.raises(lstep.InputError, match="row 1"):
            lstep.Stream.from_pandas(frame)
        frame = pandas.DataFrame({"src": [1, None], "dst": [1, 2], "time": [1, 2]})
        with pytest.raises(lstep.InputError, match="not an id"):
            lstep.Stream.from_pandas(frame)
        frame["src"] = frame["src"].astype("Int64")
        with pytest.raises(lstep.InputError, match="row 1"):
            lstep.Stream.from_pandas(frame)
        with pytest.raises(lstep.InputError, match="name it with src="):
            lstep.Stream.from_pandas(frame, src="user")

    def test_object_columns(self):
        pandas = pytest.importorskip("pandas")
        mixed = pandas.DataFrame({"src": ["a", 7, "b"], "dst": [1, 2, 3], "time": [1, 2, 3]})
        assert lstep.Stream.from_pandas(mixed).sources.tolist() == ["a", "7", "b"]
        for cell, name in (([1], "list"), ({}, "dict"), (1.5, "float"), (b"x", "bytes")):
            bad = mixed.assign(src=pandas.Series(["a", cell, "b"], dtype=object))
            with pytest.raises(lstep.InputError, match=f'row 1, column "src": holds {name}'):
                lstep.Stream.from_pandas(bad)
        never = mixed.assign(time=pandas.Series(["2021-03-04", pandas.NaT, None], dtype=object))
        with pytest.raises(lstep.InputError, match='row 1, column "time"'):
            lstep.Stream.from_pandas(never)
        twice = pandas.DataFrame([[1, 2, 3, 4]], columns=["src", "src", "dst", "time"])
        with pytest.raises(lstep.InputError, match="whole table"):
            lstep.Stream.from_pandas(twice)

    def test_what_is_no_column(self):
        for value, said in (("abc", "is str"), (7, "is int"), (None, "is NoneType")):
            with pytest.raises(lstep.InputError, match=said):
                lstep.Stream(value, [1], [1])
        with pytest.raises(lstep.InputError, match="no columns by name"):
            lstep.Stream.from_table([1, 2])

    def test_times_that_are_none(self):
        for times in (["soon", "later"], [True, "x"], np.array([1j, 2]), [{}, {}]):
            with pytest.raises(lstep.InputError, match='column "time"'):
                lstep.Stream([1, 2], [1, 2], times)
        with pytest.raises(lstep.InputError, match="finite"):
            lstep.Stream([1, 2], [1, 2], [0.0, np.inf])

    def test_features_that_are_no_numbers(self):
        with pytest.raises(lstep.InputError, match="features="):
            lstep.Stream([1, 2], [1, 2], [1, 2], features=[["a"], ["b"]])
        with pytest.raises(lstep.InputError, match="feature 0"):
            lstep.Stream([1, 2], [1, 2], [1, 2], features=[[np.inf], [1.0]])


def test_arrays_may_be_strided_read_only_and_of_other_types():
    wide = np.arange(20, dtype=np.int32)
    wide.flags.writeable = False
    stream = lstep.Stream(wide[::2], wide[1::2].astype(np.uint16), wide[::2].astype(">i8"))
    assert stream.sources.tolist() == list(range(0, 20, 2))
    assert stream.times.tolist() == list(range(0, 20, 2))


class TestNodeFeatures:
    """Features of nodes from memory: by id, whatever holds them."""

    ROWS = {"ann": [1.0, 0.5], "bob": [2.0, 0.25], "cid": [3.0, 0.0]}

    def stream(self, features, **options):
        return lstep.Stream(FROM, TO, [1, 2, 3, 4], node_features=features, **options)

    def check(self, stream):
        for name, row in zip(stream.ids, stream.node_features.tolist()):
            assert row == self.ROWS[name]

    def test_a_dict_and_every_table_give_the_same(self):
        self.check(self.stream({**self.ROWS, "nobody": [9.0, 9.0]}))
        table = {"who": list(self.ROWS), "a": [1.0, 2.0, 3.0], "b": [0.5, 0.25, 0.0]}
        for library in ("pandas", "polars"):
            self.check(self.stream(pytest.importorskip(library).DataFrame(table)))
        self.check(self.stream(pytest.importorskip("pyarrow").table(table)))

    def test_an_array_has_a_row_for_each_integer(self):
        features = np.arange(8.0).reshape(4, 2)
        stream = lstep.Stream([3, 1], [1, 2], [1, 2], node_features=features[:, ::-1])
        assert stream.ids.tolist() == [3, 1, 2]
        assert stream.node_features.tolist() == [[7, 6], [3, 2], [5, 4]]

    def test_models_see_them_and_pickles_keep_them(self):
        seen = []

        class Curious:
            def score(self, past, queries):
                seen.append(past.node_features(queries.sources))
                return np.zeros(len(queries.candidates))

            def observe(self, events):
                pass

        stream = self.stream(self.ROWS)
        again = pickle.loads(pickle.dumps(stream))
        self.check(again)
        draw = np.random.default_rng(0)
        ends = draw.integers(0, 30, (2, 1_000))
        features = np.arange(30.0).reshape(30, 1)
        wide = lstep.Stream(*ends, np.arange(1_000), node_features=features)
        lstep.evaluate(wide, Curious, negatives="random", progress=False)
        assert seen[0].shape == (len(seen[0]), 1) and seen[0].any()

    def test_two_kinds_of_nodes_need_sides(self):
        with pytest.raises(lstep.InputError, match='"side"'):
            self.stream(self.ROWS, bipartite=True)
        pandas = pytest.importorskip("pandas")
        sides = [("ann", "source"), ("bob", "source"), ("cid", "source")]
        sides += [("ann", "destination"), ("bob", "destination"), ("cid", "destination")]
        table = pandas.DataFrame(sides, columns=["id", "side"]).assign(f=[1, 2, 3, 4, 5, 6])
        stream = self.stream(table, bipartite=True)
        again = pickle.loads(pickle.dumps(stream))
        for one in (stream, again):
            assert dict(zip(one.sources, one.node_features[one.source_numbers, 0])) == {
                "ann": 1, "bob": 2, "cid": 3,
            }
            assert dict(zip(one.destinations, one.node_features[one.destination_numbers, 0])) == {
                "bob": 5, "cid": 6, "ann": 4,
            }

    def test_what_is_missing_or_no_number_is_said(self):
        with pytest.raises(lstep.InputError, match="without a row of features"):
            self.stream({"ann": [1.0], "bob": [2.0]})
        with pytest.raises(lstep.InputError, match="different lengths"):
            self.stream({"ann": [1.0], "bob": [2.0, 3.0], "cid": [1.0]})
        with pytest.raises(lstep.InputError, match='column "feature 0"'):
            self.stream({"ann": [np.nan], "bob": [2.0], "cid": [1.0]})
        with pytest.raises(lstep.InputError, match="not numbers"):
            self.stream({"ann": ["x"], "bob": ["y"], "cid": ["z"]})
        with pytest.raises(lstep.InputError, match="shape"):
            self.stream(np.zeros(3))
