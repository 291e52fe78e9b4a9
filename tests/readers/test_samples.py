"""Tables of samples in text and Parquet."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.readers.read import read
from perf_assets.readers.samples.table import unique_names, unit_of_column

TABLE = """app,args,ranks,threads,nodes,gpus,wall_seconds,PAPI_TOT_INS,Occupancy,io_bytes,Speed (MB/s),note
Laghos,-m 1,4,2,1,0,1.5,1000,Low (3),10,7.5,first
Laghos,-m 2,8,2,2,4,2.5,?,High (9),,NaN,
"""


def write(folder: Path, text: str, name: str = "t.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_columns_find_their_place(tmp_path: Path) -> None:
    reading = read(write(tmp_path, TABLE))
    first, second = reading.profiles
    assert reading.format == "samples-csv"
    assert (first.run, second.run) == ("t.csv#0", "t.csv#1")
    assert (first.ranks, first.threads_per_rank, first.hosts, first.wall_seconds) == (4, 2, 1, 1.5)
    assert {name: (t.sum, t.mean_over_ranks, t.min, t.max, t.unit) for name, t in first.metrics.items()} == {
        "PAPI_TOT_INS": (1000, 1000, 1000, 1000, "count"),
        "Occupancy": (3, 3, 3, 3, "count"),
        "io_bytes": (10, 10, 10, 10, "bytes"),
        "Speed (MB/s)": (7.5, 7.5, 7.5, 7.5, "MB/s"),
    }
    assert first.labels["note"] == "first"
    assert (second.labels["app"], second.labels["args"], second.labels["gpus"]) == ("Laghos", "-m 2", "4")
    assert second.metrics.keys() == {"Occupancy"}
    assert "note" not in second.labels


@pytest.mark.parametrize(("separator", "name"), [(";", "a"), ("\t", "b.tsv"), (" ", "c.dat")])
def test_separators(tmp_path: Path, separator: str, name: str) -> None:
    rows = [("x", "y", "label"), ("1", "2e3", "a"), ("-1.5", ".5", "b")]
    file = write(tmp_path, "\r\n".join(separator.join(row) for row in rows) + "\r\n", name)
    first, second = read(file).profiles
    assert (first.metrics["y"].sum, second.metrics["x"].sum, second.labels["label"]) == (2000, -1.5, "b")


def test_quoted_cells_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = write(tmp_path, '\ufeff"x","Kernel"\n1,"f(float*, int)"\n2,"say ""hi""\nthere"\n')
    first, second = read(file).profiles
    assert first.metrics["x"].sum == 1
    assert first.labels["Kernel"] == "f(float*, int)"
    assert second.labels["Kernel"] == 'say "hi"\nthere'


def test_column_with_one_text_is_text(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, "x,version\n1,3.1\n2,3.1.2\n")).profiles
    assert (first.labels["version"], second.labels["version"]) == ("3.1", "3.1.2")
    assert "version" not in first.metrics


def test_many_equal_names_take_no_time() -> None:
    assert unique_names(["a"] * 100_000)[-1] == "a.99999"


def test_names_are_unique() -> None:
    assert unique_names(["a", "", "a", "a.1", " a ", "b"]) == ["a", "unnamed_1", "a.1", "a.1.1", "a.2", "b"]


@pytest.mark.parametrize(
    ("name", "unit"),
    [("wall_seconds", "seconds"), ("x_bytes", "bytes"), ("a (usec)", "usec"), ("a", "count"), ("f(1)", "count")],
)
def test_unit_of_a_column(name: str, unit: str) -> None:
    assert unit_of_column(name) == unit


def test_real_tables(shared_data: Path) -> None:
    airfoil = read(shared_data / "uci" / "airfoil_self_noise.dat").profiles
    assert len(airfoil) == 1503
    assert airfoil[0].metrics["Pressure"].sum == 126.201
    skill = read(shared_data / "uci" / "SkillCraft1_Dataset.csv").profiles
    assert len(skill) == 3395
    assert "Age" not in skill[3394].metrics
    assert skill[0].metrics["Age"].sum == 27
    gpu = read(shared_data / "nvprof_gpus" / "GTX-980.csv").profiles
    assert len(gpu) == 1059
    assert gpu[0].labels["AppName"] == "matMul_gpu_uncoalesced"
    assert gpu[0].metrics["Input.Size"].sum == 256
    assert gpu[-1].run == "GTX-980.csv#1058"


def test_directory_of_tables(tmp_path: Path) -> None:
    write(tmp_path, TABLE, "a.csv")
    write(tmp_path, TABLE, "b.csv")
    profiles = read(tmp_path).profiles
    assert [profile.run for profile in profiles] == ["a.csv#0", "a.csv#1", "b.csv#0", "b.csv#1"]
    assert profiles[-1].run == "b.csv#1"
    assert [profile.run for profile in profiles[1:3]] == ["a.csv#1", "b.csv#0"]
    with pytest.raises(IndexError):
        profiles[4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n1\n", "row 1 has 1 cells"),
        ("x,y\n1,2\n1,2,3\n", "row 1 has 3 cells"),
        ("x,y\n1,inf\n", "infinite"),
        ("x,wall_seconds\n1,0\n", "wall_seconds"),
        ("x,wall_seconds\n1,-2\n", "wall_seconds"),
        ("x,ranks\n1,0\n", "ranks"),
        ("x,ranks\n1,1.5\n", "ranks"),
        ("x,ranks\n1,many\n", "must hold numbers"),
        ("x,gpus\n1,-1\n", "gpus"),
        ("1,2\n3,4\n", "no known format"),
        ("x,y\n", "no known format"),
        ("x,y\n1,2\n" + "y" * 200_000 + ",1\n", "no proper table"),
    ],
)
def test_bad_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read(write(tmp_path, text))


def test_table_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"x,y\n1,2\n3,caf\xe9\n")
    with pytest.raises(UnreadableFileError, match="UTF-8"):
        read(tmp_path)


def parquet(folder: Path, columns: dict[str, object], **options: object) -> Path:
    pq.write_table(pa.table(columns), folder / "t.parquet", **options)
    return folder / "t.parquet"


def test_parquet(tmp_path: Path) -> None:
    columns = {
        "app": ["a", "b"],
        "ranks": [4, 8],
        "wall_seconds": [1.5, None],
        "level": ["Low (3)", None],
        "flag": [True, False],
        "note": ["x", None],
        "dictionary": pa.array(["u", "v"]).dictionary_encode(),
    }
    reading = read(parquet(tmp_path, columns))
    first, second = reading.profiles
    assert reading.format == "samples-parquet"
    assert (first.ranks, first.wall_seconds, first.labels["app"]) == (4, 1.5, "a")
    assert {name: total.sum for name, total in first.metrics.items()} == {"level": 3, "flag": 1}
    assert second.wall_seconds is None
    assert second.metrics.keys() == {"flag"}
    assert second.labels == {"app": "b", "ranks": "8", "dictionary": "v"}


@pytest.mark.slow
def test_parquet_bomb_is_refused(tmp_path: Path) -> None:
    file = parquet(tmp_path, {"x": pa.array([1.0]).take(pa.array([0] * 20_000_000)), "y": pa.nulls(20_000_000)})
    assert file.stat().st_size < 2**20
    with pytest.raises(UnreadableFileError, match="unpacks to"):
        read(file)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1.0]}, "columns"),
        ({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}, "no rows"),
        ({"x": [[1.0]], "y": [1.0]}, "only numbers and text"),
        ({"x": [float("inf")], "y": [1.0]}, "infinite"),
    ],
)
def test_bad_parquet_is_refused(tmp_path: Path, columns: dict[str, object], message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read(parquet(tmp_path, columns))


def test_cut_parquet_is_refused(tmp_path: Path) -> None:
    file = parquet(tmp_path, {"x": [1.0], "y": [2.0]})
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(UnreadableFileError, match="Parquet"):
        read(file)
