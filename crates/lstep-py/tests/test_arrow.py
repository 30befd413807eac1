"""Tables of any library through Arrow's capsules, and results that any library takes."""

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pytest

import lstep
from lstep import _core
from lstep._columns import form

SMALL = {"src": ["ann", "bob", "ann"], "dst": ["bob", "cid", "a name of many letters"]}


class Capsules:
    """Gives capsules and nothing else: no library knows its type."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__()


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow")


def test_a_stream_goes_through_arrow_and_back_without_any_library():
    times = np.array(["2021-03-04", "2021-03-05T01:02:03.5", "2021-03-06"], "M8[ms]")
    stream = lstep.Stream(SMALL["src"], SMALL["dst"], times, [[0.5], [1.5], [2.5]])
    again = lstep.Stream.from_table(Capsules(stream), features="f0")
    assert again.sources.tolist() == SMALL["src"]
    assert again.destinations.tolist() == SMALL["dst"]
    assert (again.times == times).all() and again.features.tolist() == stream.features.tolist()
    numbers = lstep.Stream([5, -3], [2**40, 5], [1, 2])
    again = lstep.Stream.from_table(Capsules(numbers))
    assert again.sources.tolist() == [5, -3] and again.times.tolist() == [1, 2]


def test_no_table_library_is_imported_for_it():
    code = (
        "import sys, lstep\n"
        "lstep.Stream.from_table(lstep.Stream(['a', 'b'], ['b', 'c'], [1, 2]))\n"
        "assert not {'pandas', 'polars', 'pyarrow', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_are_taken_by_what_takes_arrow(stream, pyarrow):
    found = lstep.evaluate(stream, ["edgebank", "poptrack"], progress=False)
    table = pyarrow.table(found)
    assert table.num_rows == 6 and table.column("ap").to_pylist() == [row["ap"] for row in found]
    assert table.column("model").to_pylist() == [row["model"] for row in found]
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(found).equals(found.to_polars())
    events = pyarrow.table(stream)
    assert events.column("src").to_pylist() == stream.sources.tolist()


def test_empty_cells_of_results_are_empty_in_arrow(pyarrow):
    columns = [("integer", [1, None]), ("float", [None, 0.5]), ("bool", [True, None])]
    columns += [("text", [None, "ß"]), ("ns", np.array([1, 2]))]
    names = ["i", "f", "b", "t", "n"]

    class Given:
        def __arrow_c_stream__(self, requested_schema=None):
            return _core.arrow_stream(names, columns)

    table = pyarrow.table(Given())
    table.validate(full=True)
    assert [table.column(name).to_pylist() for name in "ifbt"] == [
        [1, None], [None, 0.5], [True, None], [None, "ß"],
    ]
    assert table.column("n").type == pyarrow.timestamp("ns")


def test_numbers_in_one_piece_are_read_where_they_lie(pyarrow):
    ids, times = pyarrow.array([1, 2, 3]), pyarrow.array([0.5, 1.5, 2.5])
    for values, kind in ((ids, "integer"), (times, "float"), (ids.cast("timestamp[us]"), "us")):
        name, array = form(values, "x")
        assert name == kind and not array.flags.writeable
        assert array.ctypes.data == values.buffers()[1].address
    polars = pytest.importorskip("polars")
    series = polars.Series([4, 5, 6])
    array = form(series, "x")[1]
    assert array.ctypes.data == series.to_numpy().ctypes.data
    del series
    assert array.tolist() == [4, 5, 6], "the array holds what it shows"


def test_numbers_of_every_type(pyarrow):
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        name, array = form(pyarrow.array([3, 0, 7], type=kind), "x")
        assert (name, array.tolist(), array.dtype) == ("integer", [3, 0, 7], np.int64), kind
    for kind in ("float16", "float32", "float64"):
        name, array = form(pyarrow.array(np.array([0.5, -2.0], dtype=kind)), "x")
        assert (name, array.tolist(), array.dtype) == ("float", [0.5, -2.0], np.float64), kind
    assert form(pyarrow.array([True, False, True]), "x")[1].tolist() == [1, 0, 1]
    large = form(pyarrow.array([2**64 - 1, 5], type="uint64"), "x")
    values, places = large[1]
    assert [values[place] for place in places] == [str(2**64 - 1), "5"]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_text_of_every_type(kind, pyarrow):
    cells = ["a", "a text of more than twelve letters", None, "", "a", "another of many letters"]
    array = pyarrow.array(cells, type=getattr(pyarrow, kind)())
    for given in (array, pyarrow.chunked_array([array[:2], array[2:]]), array[1:]):
        _, (values, places) = form(given, "x")
        found = [None if place < 0 else values[place] for place in places]
        assert found == given.to_pylist()
        assert len(set(values)) == len(values)


def test_pieces_slices_and_dictionaries(pyarrow):
    whole = pyarrow.table({"src": list("abcabc"), "dst": [1, 2, 3, 4, 5, 6], "time": range(6)})
    pieces = [whole.slice(0, 2), whole.slice(2, 1), whole.slice(3, 3)]
    for table in (pyarrow.concat_tables(pieces), pyarrow.concat_tables(pieces).slice(1, 4)):
        stream = lstep.Stream.from_table(Capsules(table))
        assert stream.sources.tolist() == table.column("src").to_pylist()
        assert stream.destinations.tolist() == [str(n) for n in table.column("dst").to_pylist()]
        assert stream.times.tolist() == table.column("time").to_pylist()
    batch = whole.to_batches()[0].slice(2, 3)
    assert lstep.Stream.from_table(batch).sources.tolist() == list("cab")
    first, second = pyarrow.array(list("xyx")), pyarrow.array(["z", None, "x"])
    both = pyarrow.chunked_array([first.dictionary_encode(), second.dictionary_encode()])
    _, (values, places) = form(both, "x")
    assert [None if place < 0 else values[place] for place in places] == [*"xyxz", None, "x"]
    numbers = pyarrow.array([7, 9, 7]).dictionary_encode()
    assert form(numbers, "x")[1].tolist() == [7, 9, 7]


def test_moments_of_every_unit_and_zone(pyarrow):
    moment = datetime.datetime(2021, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc)
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Asia/Tokyo"):
            times = pyarrow.array([moment, None], pyarrow.timestamp(unit, zone))
            name, array = form(times, "x")
            assert name == unit and np.isnat(array.view(f"M8[{unit}]")[1])
            assert array.view(f"M8[{unit}]")[0] == np.datetime64("2021-03-04T05:06:07")
    days = [datetime.date(2021, 3, 4), None]
    for kind, unit in (("date32", "s"), ("date64", "ms")):
        name, array = form(pyarrow.array(days, type=kind), "x")
        assert name == unit and np.isnat(array.view(f"M8[{unit}]")[1])
        assert array.view(f"M8[{unit}]")[0] == np.datetime64("2021-03-04")


def test_what_is_no_id_and_no_time_is_refused_by_name(pyarrow):
    for name, kind in (
        ("decimal", pyarrow.decimal128(5, 2)),
        ("binary", pyarrow.binary()),
        ("list", pyarrow.list_(pyarrow.int64())),
    ):
        with pytest.raises(lstep.InputError, match=f'column "x": has the type {name}') as caught:
            form(_one(pyarrow, kind), "x")
        assert "give integers, decimals, text or dates" in str(caught.value)
    with pytest.raises(lstep.InputError, match='row 2, column "x": is empty'):
        form(pyarrow.chunked_array([[1, 2], [None, 3]]), "x")
    with pytest.raises(lstep.InputError, match="row 0"):
        form(pyarrow.nulls(2), "x")
    with pytest.raises(lstep.InputError, match="whole table"):
        form(pyarrow.table(SMALL), "x")
    with pytest.raises(lstep.InputError, match="no columns by name"):
        lstep.Stream.from_table(pyarrow.chunked_array([[1]]))
    polars = pytest.importorskip("polars")
    with pytest.raises(lstep.InputError, match="collect"):
        lstep.Stream.from_table(polars.LazyFrame(SMALL))


def _one(pyarrow, kind):
    value = {"decimal128(5, 2)": decimal.Decimal("1.5"), "binary": b"x"}
    return pyarrow.array([value.get(str(kind), [1])], type=kind)


def test_a_producer_that_fails_is_heard(pyarrow):
    schema = pyarrow.schema([("src", pyarrow.int64())])

    def batches():
        yield pyarrow.record_batch({"src": [1]}, schema=schema)
        raise ValueError("the disk is gone")

    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(Exception, match="the disk is gone"):
        lstep.Stream.from_table(reader)

    class Twice:
        capsule = pyarrow.table(SMALL).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    once = Twice()
    _core.ArrowTable(once)
    with pytest.raises(RuntimeError, match="read before"):
        _core.ArrowTable(once)

    class Other:
        def __arrow_c_stream__(self, requested_schema=None):
            return "no capsule"

    with pytest.raises(TypeError, match="capsules"):
        _core.ArrowTable(Other())


def test_duckdb_is_asked_as_it_is():
    duckdb = pytest.importorskip("duckdb")
    query = "select 'user-' || range % 7 as src, range % 5 as dst, to_timestamp(range) as time"
    stream = lstep.Stream.from_table(duckdb.sql(f"{query} from range(5000)"))
    assert len(stream) == 5_000 and stream.sources[8] == "user-1"
    assert stream.times[1] == np.datetime64("1970-01-01T00:00:01")
