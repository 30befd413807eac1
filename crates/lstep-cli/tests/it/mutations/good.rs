//! Good files for every fuzz target.

use super::fuzz::{STREAM, join, small_stream};
use lstep::checkpoint::Checkpoint;
use lstep::data::write_tgb;
use lstep::evaluation::Evaluation;
use lstep::model::registry;
use lstep::read::{Dataset, Layout, write_as, write_csv, write_events};
use lstep::serving::Bundle;
use lstep::settings::{DataConfig, RunConfig};
use lstep::training::{RunFolder, TrainedRun, TrainingRun};
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

/// The good files of a target.
///
/// # Panics
/// If there is no such target.
pub fn files(target: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let data = small_stream(None);
    match target {
        "csv" => tables(folder, &data),
        "npy" => {
            let mut tables = dgb_files(folder, &data)[1..].to_vec();
            tables.push(npy("<f8", true, &[0; 32]));
            tables.push(npy("<f4", false, &[0; 16]));
            tables
        }
        "parquet" => vec![parquet(folder, &data), parquet(folder, &small_stream(Some(20)))],
        "dgb" => {
            let files = dgb_files(folder, &data);
            vec![join(&[&files[0], &files[1], &files[2]])]
        }
        "node_features" => {
            let csv = b"id,f0,f1\n3,0.5,1.0\n1,-2.0,3.0\n2,0.25,0.0\n4,1e-3,7\n".to_vec();
            let of = |choice: u8, bytes: Vec<u8>| [vec![choice], bytes].concat();
            vec![of(0, csv), of(1, node_parquet(folder)), of(2, npy("<f4", false, &[1; 40]))]
        }
        "pickle" => {
            ["numpy1_protocol2", "numpy1_protocol5", "numpy2_protocol3", "numpy2_protocol4"]
                .map(|name| read(&fixtures().join(format!("tgb/{name}.pkl"))))
                .to_vec()
        }
        "tgb_negatives" => {
            let path = folder.join("tgbl-fuzz_edgelist.csv");
            let files = write_tgb(&path, &small_stream(Some(20)), Some(4)).expect("written");
            vec![join(&[&read(&files[0]), &read(&files[2])])]
        }
        "negatives" => {
            let evaluation = Evaluation::new(&STREAM).model("edgebank").expect("known");
            evaluation.write_negatives(folder).run().expect("evaluated");
            vec![read(&folder.join("test-transductive-random.csv"))]
        }
        "checkpoint" => {
            let mut checkpoint = Checkpoint::default();
            checkpoint.push_f32("weight", vec![0.5; 12]);
            checkpoint.push_u64("events", vec![1, 2, 3]);
            checkpoint.push_u8("names", b"abc".to_vec());
            checkpoint.notes.insert("settings".into(), "{\"a\": 1}".into());
            let path = folder.join("x.safetensors");
            checkpoint.write(&path).expect("written");
            vec![read(&path), read(&trained(folder, "lstep").join("last.safetensors"))]
        }
        "bundle" => learned().map(|model| exported(folder, model)).collect(),
        "settings" => learned()
            .map(|model| {
                let config = RunConfig::builder(DataConfig::default()).model(model);
                config.build().expect("defaults").to_toml().into_bytes()
            })
            .collect(),
        "report" => {
            let evaluation = Evaluation::new(&STREAM).model("edgebank").expect("known");
            vec![evaluation.run().expect("evaluated").to_json().into_bytes()]
        }
        "zip" => vec![archive(), archive_with_folders()],
        other => panic!("no good files for {other}"),
    }
}

/// The names of the models that learn.
fn learned() -> impl Iterator<Item = &'static str> {
    registry::learned_kinds().into_iter().map(|kind| kind.name())
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fixtures of the library's tests.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lstep/tests/fixtures")
}

/// Tables in every layout, plain and packed. The first byte chooses how they are read.
fn tables(folder: &Path, data: &Dataset) -> Vec<Vec<u8>> {
    let mut csv = vec![0];
    write_csv(&mut csv, data, b',').expect("memory");
    let mut tables = vec![csv];
    for name in ["x.csv.gz", "x.tsv.zst", "ml_x.csv"] {
        let path = folder.join(name);
        write_as(&path, data, Layout::of_name(&path)).expect("written");
        tables.push([vec![if name == "ml_x.csv" { 7 } else { 0 }], read(&path)].concat());
    }
    let path = folder.join("jodie.csv");
    write_as(&path, &small_stream(Some(20)), Layout::Jodie).expect("written");
    tables.push([vec![2], read(&path)].concat());
    let texts: [(u8, &str); 7] = [
        (0, "source,target,time\nann,bob,2021-03-04\n\"b,ob\",ann,2021-03-05T12:00:00.5Z\n"),
        (0, "1 2 0.5\n2 3 1.5\n3 1 1e3\n"),
        (0, "{\"u\":1,\"i\":\"a\",\"x\":{\"y\":2},\"ts\":1}\n{\"ts\":2.5,\"i\":\"b\",\"u\":3}\n"),
        (3, "u,i,ts,label,f\n0,0,1,0,0.5\n1,0,2,0,0.25\n0,1,2,0,1\n"),
        (4, "day,src,dst,w\n1,0xa,0xb,3.5\n2,0xb,0xc,0\n"),
        (5, "ts,src,dst,words,score\n1,ann,bob,12,3\n2,bob,eve,7,-1\n"),
        (6, "day,src,dst,callsign,typecode\n1,KJFK,EDDF,DLH4A,A320\n2,EDDF,KJFK,,B747\n"),
    ];
    tables.extend(texts.map(|(choice, text)| [vec![choice], text.into()].concat()));
    tables
}

/// Events and the tables beside them, in DGB's layout.
fn dgb_files(folder: &Path, data: &Dataset) -> Vec<Vec<u8>> {
    let path = folder.join("ml_dgb.csv");
    let written = write_as(&path, data, Layout::Dgb).expect("written");
    let mut files: Vec<Vec<u8>> = written.files.iter().map(|file| read(file)).collect();
    files.resize_with(3, || npy("<f8", false, &[0; 31 * 2 * 8]));
    files
}

/// A table of two columns.
fn npy(kind: &str, fortran: bool, values: &[u8]) -> Vec<u8> {
    let width: usize = kind[2..].parse().expect("a width");
    let (rows, fortran) = (values.len() / width / 2, if fortran { "True" } else { "False" });
    let header =
        format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': ({rows}, 2), }}");
    let mut bytes = b"\x93NUMPY\x01\x00v\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").into_bytes());
    bytes.extend(values);
    bytes
}

fn parquet(folder: &Path, data: &Dataset) -> Vec<u8> {
    let path = folder.join("x.parquet");
    write_events(&path, data).expect("written");
    read(&path)
}

/// A table with an id first is one of events, too: id, and two more columns of numbers.
fn node_parquet(folder: &Path) -> Vec<u8> {
    let text = "source,destination,time\n1,5,1\n2,6,2\n3,7,3\n4,8,4\n";
    let data = lstep::read::read_from("nodes.csv", text.as_bytes(), &Default::default());
    parquet(folder, &data.expect("a stream"))
}

/// The folder of a small run.
fn trained(folder: &Path, model: &str) -> PathBuf {
    let small: &[&str] = match model {
        "graphmixer" => &["model.channels=4", "model.recent=2"],
        "tgn" => &["model.recent=2"],
        "dygformer" => &["model.channel_width=4", "model.longest=4", "model.patch=2"],
        "lstep" | "lstep-pair" => {
            &["model.position_width=2", "model.snapshots=2", "model.recent=2"]
        }
        _ => &[],
    };
    let widths = ["model.time_width=2", "model.node_width=2", "model.edge_width=2"];
    let steps = ["protocol.step=20", "train.epochs=1"];
    let settings: Vec<String> =
        [&widths, small, &steps].concat().iter().map(|setting| setting.to_string()).collect();
    let config = RunConfig::builder(DataConfig::default()).model(model).set(&settings);
    let run = RunFolder::new(folder.join(model));
    TrainingRun::begin(config.build().expect("settings"), STREAM.clone(), run.clone())
        .and_then(|mut training| training.run(&mut |_| ControlFlow::Continue(())))
        .expect("trained");
    run.path().to_path_buf()
}

fn exported(folder: &Path, model: &str) -> Vec<u8> {
    let run = RunFolder::new(trained(folder, model));
    let run = TrainedRun::open_with(&run, STREAM.clone()).expect("opened");
    let path = folder.join("model.lstep");
    Bundle::of_trained(run).and_then(|bundle| bundle.write(&path)).expect("written");
    read(&path)
}

fn archive() -> Vec<u8> {
    packed(&[("uci/ml_uci.csv", ",u,i,ts,label,idx\n0,1,2,3,0,1\n"), ("uci/ml_uci.npy", "\u{93}")])
}

/// With what systems add to archives.
fn archive_with_folders() -> Vec<u8> {
    let text = "one, two, one, two, three, one, two, three, four ".repeat(20);
    packed(&[("uci/", ""), ("uci/a.csv", &text), ("__MACOSX/._a.csv", "x"), ("b.csv", &text)])
}

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        let options = SimpleFileOptions::default();
        match name.strip_suffix('/') {
            Some(folder) => zip.add_directory(folder, options).expect("an entry"),
            None => {
                zip.start_file(*name, options).expect("an entry");
                zip.write_all(text.as_bytes()).expect("memory");
            }
        }
    }
    zip.finish().expect("memory").into_inner()
}
