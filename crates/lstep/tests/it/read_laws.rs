//! Laws of the reading room on arbitrary input: nothing panics, and what was written reads back.

use lstep::event::Side;
use lstep::read::{
    FeatureColumns, ReadOptions, read, read_from, read_npy_from, write_csv, write_events,
};
use proptest::prelude::*;

fn options() -> impl Strategy<Value = ReadOptions> {
    let features = prop_oneof![
        Just(FeatureColumns::Automatic),
        Just(FeatureColumns::None),
        Just(FeatureColumns::All)
    ];
    (features, any::<bool>(), any::<bool>(), proptest::option::of(any::<bool>())).prop_map(
        |(features, bipartite, sort, header)| ReadOptions {
            features,
            bipartite,
            sort,
            header,
            ..Default::default()
        },
    )
}

/// Bytes that look like a table more often than arbitrary ones do.
fn almost_table() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => "[0-9]{1,3}".prop_map(String::into_bytes),
        8 => Just(b",".to_vec()),
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\"".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\t".to_vec()),
        1 => Just(b"u,i,ts\n".to_vec()),
        1 => Just(b"src,dst,time,f0\n".to_vec()),
        1 => Just(b"2021-03-04T05:06:07.5Z".to_vec()),
        1 => Just(b"1e999".to_vec()),
        1 => Just("é\u{feff}".as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..3),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

const NAMES: [&str; 8] = [
    "e.csv",
    "ml_x.csv",
    "tgbl-wiki_edgelist.csv",
    "tgbl-coin_edgelist.csv",
    "tgbl-comment_edgelist.csv",
    "tgbl-flight_edgelist.csv",
    "e.tsv",
    "e.parquet",
];

/// A stream as text, with one way of writing times.
fn stream() -> impl Strategy<Value = (String, bool)> {
    let id = prop_oneof![
        4 => "[0-9]{1,3}",
        2 => "[a-z]{1,4}",
        1 => "[ -~]{1,6}",
        1 => "[,\"\n\r\t é日]{1,5}",
    ];
    let event = (id.clone(), id, 0u64..1_000, proptest::collection::vec(-1e6f32..1e6, 2));
    (proptest::collection::vec(event, 1..40), 0..4, any::<bool>()).prop_map(
        |(events, clock, bipartite)| {
            let mut now = 1_600_000_000u64;
            let mut text = String::from("source,destination,time,f0,f1\n");
            for (source, destination, wait, features) in events {
                now += wait;
                let time = match clock {
                    0 => now.to_string(),
                    1 => format!("{now}.25"),
                    2 => format!("{now}123456789"),
                    _ => format!(
                        "2021-03-04T05:{:02}:07.{:03}Z",
                        (now - 1_600_000_000) / 1_000,
                        (now - 1_600_000_000) % 1_000
                    ),
                };
                let quoted = |id: String| format!("\"{}\"", id.replace('"', "\"\""));
                text += &format!(
                    "{},{},{time},{:?},{:?}\n",
                    quoted(source),
                    quoted(destination),
                    features[0],
                    features[1]
                );
            }
            (text, bipartite)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), options in options(), name in 0..8usize) {
        let _ = read_from(NAMES[name], &bytes[..], &options);
        let _ = read_npy_from("x.npy", &bytes[..]);
    }

    #[test]
    fn almost_tables_never_panic(bytes in almost_table(), options in options(), name in 0..8usize) {
        if let Ok(data) = read_from(NAMES[name], &bytes[..], &options) {
            prop_assert!(!data.events.is_empty());
            prop_assert!(data.events.node_bound() <= data.names.len());
            for (event, name) in data.names.iter().enumerate() {
                let node = lstep::event::NodeId(event as u32);
                let side = data.names.side(node).unwrap_or(Side::Source);
                prop_assert_eq!(data.names.find(&name.to_string(), side), Some(node));
            }
        }
    }

    #[test]
    fn arbitrary_npy_headers_never_panic(kind in "[<>|=]?[a-zA-Z][0-9]{1,2}", shape in "[(][0-9 ,]{0,24}[)]", fortran in any::<bool>(), data in proptest::collection::vec(any::<u8>(), 0..64)) {
        let fortran = if fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        let _ = read_npy_from("x.npy", &bytes[..]);
    }

    #[test]
    fn what_was_written_reads_back((text, bipartite) in stream()) {
        let options = ReadOptions { bipartite, ..ReadOptions::default() };
        let first = read_from("x.csv", text.as_bytes(), &options).expect("a good stream");
        let mut csv = Vec::new();
        write_csv(&mut csv, &first, b',').expect("memory");
        prop_assert_eq!(&read_from("x.csv", &csv[..], &options).expect("what was written"), &first);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.parquet");
        write_events(&path, &first).expect("a good folder");
        prop_assert_eq!(&read(&path, &options).expect("what was written"), &first);
    }

    #[test]
    fn sorting_equals_sorting_beforehand(times in proptest::collection::vec(0u8..20, 1..50)) {
        let row = |(number, time): (usize, &u8)| format!("{},{},{time},{number}\n", number % 7, number % 5 + 10);
        let shuffled: String = times.iter().enumerate().map(row).collect();
        let mut rows: Vec<(usize, &u8)> = times.iter().enumerate().collect();
        rows.sort_by_key(|(_, time)| **time);
        let sorted: String = rows.into_iter().map(row).collect();
        let header = "u,i,t,w\n";
        let sort = ReadOptions { sort: true, ..ReadOptions::default() };
        let first = read_from("x.csv", format!("{header}{shuffled}").as_bytes(), &sort).expect("a good stream");
        let second = read_from("x.csv", format!("{header}{sorted}").as_bytes(), &ReadOptions::default()).expect("a sorted stream");
        prop_assert_eq!(first, second);
    }
}
