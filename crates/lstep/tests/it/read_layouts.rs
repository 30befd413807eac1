//! Every layout and way of writing that is accepted, and what comes out of it.

use lstep::event::{Clock, Event, NodeId, Side, Unit};
use lstep::read::{Dataset, FeatureColumns, Format, ReadOptions, read, read_from, write_events};

fn named(name: &str, text: &str, options: &ReadOptions) -> Dataset {
    read_from(name, text.as_bytes(), options).expect("a good file")
}

fn data(text: &str) -> Dataset {
    named("e.csv", text, &ReadOptions::default())
}

fn bipartite() -> ReadOptions {
    ReadOptions { bipartite: true, ..ReadOptions::default() }
}

/// Events as text: source, destination, time, features.
fn shown(data: &Dataset) -> Vec<String> {
    let show = |event: Event| {
        let features: Vec<String> = match data.events.features().width() {
            0 => Vec::new(),
            _ => data
                .events
                .features()
                .row(event.number as usize)
                .iter()
                .map(|value| format!(" {value}"))
                .collect(),
        };
        let (source, destination) =
            (data.names.name(event.source), data.names.name(event.destination));
        format!("{source} {destination} {}{}", data.clock.show(event.time), features.concat())
    };
    data.events.iter().map(show).collect()
}

#[test]
fn columns_are_found_by_name_wherever_they_stand() {
    let data = data("time,to,from,note\n5,b,a,x\n6,c,b,y\n");
    assert_eq!(shown(&data), ["a b 5", "b c 6"]);
    assert_eq!(data.names.find("a", Side::Source), Some(NodeId(0)), "the source is numbered first");
    assert_eq!(data.ignored_columns, ["note"]);
}

#[test]
fn all_ways_of_writing_a_table_give_the_same_events() {
    let expected = shown(&data("u,i,ts,w\n1,2,3,0.5\n2,1,4,1.5\n"));
    for text in [
        "\u{feff}u,i,ts,w\n1,2,3,0.5\n2,1,4,1.5\n",
        "u,i,ts,w\r\n1,2,3,0.5\r\n2,1,4,1.5\r\n",
        "u,i,ts,w\n1,2,3,0.5\n2,1,4,1.5",
        "u\ti\tts\tw\n1\t2\t3\t0.5\n2\t1\t4\t1.5\n",
        "u;i;ts;w\n1;2;3;0.5\n2;1;4;1.5\n",
        "u i ts w\n1 2  3 0.5\n2 1 4 1.5 \n",
        "# from somewhere\n% and a note\n\nu,i,ts,w\n\n1,2,3,0.5\n\n2,1,4,1.5\n\n",
        "\"u\",\"i\",\"ts\",\"w\"\n\"1\",2,\"3\",\"0.5\"\n2,\"1\",4,1.5\n",
        "u, i, ts, w\n1, 2, 3, 0.5\n2, 1, 4, 1.5\n",
        "1,2,3,0.5\n2,1,4,1.5\n",
    ] {
        assert_eq!(shown(&data(text)), expected, "{text:?}");
    }
}

#[test]
fn ids_are_integers_only_if_all_print_back() {
    assert!(data("u,i,ts\n1,2,3\n").names.are_integers());
    let text = data("u,i,ts\n1,2,3\n1,007,4\n");
    assert!(!text.names.are_integers());
    assert_eq!(shown(&text), ["1 2 3", "1 007 4"]);
}

#[test]
fn ids_may_hold_separators_quotes_line_ends_and_any_script() {
    let data = data("u,i,ts\n\"a,b\",\"say \"\"hi\"\"\",1\n\"two\nlines\",日本,2\n");
    assert_eq!(shown(&data), ["a,b say \"hi\" 1", "two\nlines 日本 2"]);
}

#[test]
fn sides_are_separated_on_request() {
    let text = "u,i,ts\n1,2,3\n2,1,4\n";
    assert_eq!(data(text).names.len(), 2);
    let data = named("e.csv", text, &bipartite());
    assert_eq!(data.names.len(), 4);
    assert!(data.bipartite());
    let numbers: Vec<i64> =
        data.events.iter().map(|event| data.names.number(event.destination)).collect();
    assert_eq!(
        numbers,
        [2 + 2 + 1 + 1, 1 + 2 + 1 + 1],
        "destinations follow the largest source, all from 1"
    );
}

#[test]
fn sorting_is_stable_and_takes_features_along() {
    let options = ReadOptions { sort: true, ..ReadOptions::default() };
    let sorted = named("e.csv", "u,i,ts,w\nc,d,7,3\na,b,5,1\nd,c,7,4\nb,a,5,2\n", &options);
    assert_eq!(shown(&sorted), ["a b 5 1", "b a 5 2", "c d 7 3", "d c 7 4"]);
    let already = data("u,i,ts,w\na,b,5,1\nb,a,5,2\nc,d,7,3\nd,c,7,4\n");
    assert_eq!(sorted, already, "numbers follow first appearance in the sorted stream");
}

#[test]
fn times_are_kept_exactly() {
    assert_eq!(
        data("u,i,t\n1,2,1700000000123456789\n").clock,
        Clock::Integer { origin: 1_700_000_000_123_456_789 }
    );
    let text = "u,i,t\n1,2,2021-03-04T05:06:07.089+01:00\n1,2,2021-03-04 05:06:08Z\n";
    assert_eq!(data(text).clock, Clock::Iso8601 { unit: Unit::Millisecond, origin: 0 });
    assert_eq!(
        shown(&data(text)),
        ["1 2 2021-03-04T04:06:07.089Z", "1 2 2021-03-04T05:06:08.000Z"]
    );
    assert_eq!(shown(&data("u,i,t\n1,2,0.1\n1,2,1\n")), ["1 2 0.1", "1 2 1.0"]);
}

#[test]
fn features_that_are_all_zero_are_absent() {
    assert_eq!(data("u,i,t,w\n1,2,3,0\n1,2,4,0.0\n").events.features().width(), 0);
}

#[test]
fn jodie_is_known_by_its_header() {
    let text = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n0,0,0.0,0,0.5,1\n1,0,36.0,0,0,2\n";
    let data = data(text);
    assert!(data.bipartite());
    assert_eq!(shown(&data), ["0 0 0.0 0.5 1", "1 0 36.0 0 2"]);
    let numbers: Vec<i64> = (0..3).map(|node| data.names.number(NodeId(node))).collect();
    assert_eq!(numbers, [1, 3, 2]);
    let options = ReadOptions { features: FeatureColumns::None, ..ReadOptions::default() };
    assert_eq!(named("e.csv", text, &options).events.features().width(), 0);
}

#[test]
fn tgb_wiki_cuts_times_and_numbers_from_zero() {
    let data = named(
        "tgbl-wiki_edgelist_v2.csv",
        "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n0,0,0.0,0,0.5\n3,1,36.9,0,1\n",
        &ReadOptions::default(),
    );
    assert_eq!(data.name, "tgbl-wiki");
    assert_eq!(shown(&data), ["0 0 0 0.5", "3 1 36 1"]);
    let numbers = data.events.iter().map(|event| data.names.tgb_number(event.destination));
    assert_eq!(numbers.collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn other_tgb_edge_lists_are_read_by_position() {
    let tgb = |name: &str, text: &str| named(name, text, &ReadOptions::default());
    let coin = tgb("tgbl-coin_edgelist_v2.csv", "day,src,dst,w\n5,0xb,0xa,4\n6,0xa,0xc,0\n");
    assert_eq!(shown(&coin), ["0xb 0xa 5 2", "0xa 0xc 6 0"]);
    assert_eq!(coin.names.tgb_number(coin.events.at(1).destination), 2);
    let comment = tgb("tgbl-comment_edgelist.csv", "ts,src,dst,num_words,score\n5,x,y,2500,-3\n");
    assert_eq!(shown(&comment), ["x y 5 0.5 0.5 -3"]);
    let flight = tgb(
        "tgbl-flight_edgelist_v2.csv",
        "day,src,dst,callsign,typecode\n1546300800,LFPG,EGLL,AF1,\n",
    );
    assert_eq!(
        shown(&flight)[0],
        "LFPG EGLL 1546300800 30 35 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"
    );
}

#[test]
fn a_layout_and_columns_can_be_given() {
    let options = ReadOptions { format: Some(Format::TgbWeight), ..ReadOptions::default() };
    assert_eq!(shown(&named("x.csv", "when,who,whom,much\n5,a,b,8\n", &options)), ["a b 5 3"]);
    let options = ReadOptions {
        source: Some("Who".into()),
        destination: Some("2".into()),
        time: Some("when".into()),
        ..ReadOptions::default()
    };
    assert_eq!(shown(&named("x.csv", "who,whom,when\na,b,5\n", &options)), ["a b 5"]);
}

fn npy(rows: usize, width: usize, values: &[f32]) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

#[test]
fn dgb_takes_features_from_the_tables_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ml_x.csv");
    std::fs::write(&path, ",u,i,ts,label,idx\n0,2,1,0.0,0.0,2\n1,1,2,1.0,0.0,1\n").expect("a file");
    let bare = read(&path, &ReadOptions::default()).expect("tables may be missing");
    assert_eq!((bare.events.features().width(), bare.node_features.width()), (0, 0));
    assert_eq!(bare.name, "x");
    std::fs::write(folder.path().join("ml_x.npy"), npy(3, 2, &[0.0, 0.0, 1.0, 2.0, 3.0, 4.0]))
        .expect("a file");
    std::fs::write(folder.path().join("ml_x_node.npy"), npy(4, 1, &[0.0, 10.0, 20.0, 30.0]))
        .expect("a file");
    let data = read(&path, &ReadOptions::default()).expect("a good file");
    assert_eq!(shown(&data), ["2 1 0.0 3 4", "1 2 1.0 1 2"]);
    assert_eq!(data.node_features.values(), [20.0, 10.0], "node 0 is the one called 2");
    std::fs::write(folder.path().join("ml_x_node.npy"), npy(2, 1, &[0.0, 0.0])).expect("a file");
    assert_eq!(
        read(&path, &ReadOptions::default()).expect("zeros are no table").node_features.width(),
        0
    );
}

#[test]
fn node_features_are_read_from_a_table_by_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = folder.path().join("n.csv");
    std::fs::write(&nodes, "id,x,y\nb,1,2\nzz,0,0\na,3,4\n").expect("a file");
    let options = ReadOptions { node_features: Some(nodes.clone()), ..ReadOptions::default() };
    let data = named("e.csv", "u,i,t\na,b,1\n", &options);
    assert_eq!(data.node_features.values(), [3.0, 4.0, 1.0, 2.0]);
    assert_eq!(data.unused_node_rows, 1);
    std::fs::write(&nodes, "id,side,x\nb,destination,1\na,source,2\n").expect("a file");
    let options = ReadOptions { bipartite: true, ..options };
    assert_eq!(named("e.csv", "u,i,t\na,b,1\n", &options).node_features.values(), [2.0, 1.0]);
    // In Parquet, too, the first column is the id and all others are numbers.
    let table = folder.path().join("n.parquet");
    write_events(&table, &named("e.csv", "u,i,t\n7,1,5\n8,2,6\n", &ReadOptions::default()))
        .expect("a good folder");
    let options = ReadOptions { node_features: Some(table), ..ReadOptions::default() };
    assert_eq!(
        named("e.csv", "u,i,t\n8,7,1\n", &options).node_features.values(),
        [2.0, 6.0, 1.0, 5.0]
    );
}

#[test]
fn what_was_written_reads_back_in_every_format() {
    let formats = ["x.csv", "x.tsv", "x.csv.gz", "x.csv.zst", "x.parquet", "x.pq"];
    for text in [
        "u,i,ts,f0,f1\n3,1,5,0.1,1e-30\n1,3,5,-2,3e37\n",
        "u,i,ts\nann,\" bob \",0.1\n\"a,\"\"b\"\"\n\",ann,1e300\n",
        "u,i,ts\nann,bob,2021-03-04\nbob,ann,2021-03-05\n",
        "u,i,ts\nann,bob,2021-03-04T00:00:00.001Z\nbob,ann,2021-03-05\n",
        "u,i,ts\nann,bob,2021-03-04T00:00:00.000001Z\nbob,ann,2021-03-05\n",
        "u,i,ts\nann,bob,2021-03-04T00:00:00.000000001Z\nbob,ann,2021-03-05\n",
        "u,i,ts\n1,2,1700000000123456789\n2,1,1700000000123456790\n",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for name in formats {
            for options in [ReadOptions::default(), bipartite()] {
                let first = named("x.csv", text, &options);
                let path = folder.path().join(name);
                write_events(&path, &first).expect("a good folder");
                assert_eq!(read(&path, &options).expect("what was written"), first, "{name}");
            }
        }
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(left.len(), formats.len(), "no partial file is left: {left:?}");
    }
}

#[test]
fn parquet_remembers_separated_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    let data = named("x.csv", "u,i,ts\n1,1,5\n", &bipartite());
    write_events(&path, &data).expect("a good folder");
    assert_eq!(read(&path, &ReadOptions::default()).expect("what was written").names.len(), 2);
    let bytes = std::fs::read(&path).expect("what was written");
    let piped = read_from("standard input", &bytes[..], &ReadOptions::default())
        .expect("known by its first bytes");
    assert_eq!((piped.name.as_str(), &piped.events), ("stdin", &data.events));
}

#[test]
fn compressed_streams_are_known_by_their_first_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = data("u,i,ts\n1,2,3\n");
    for name in ["x.csv.gz", "x.csv.zst"] {
        write_events(folder.path().join(name), &data).expect("a good folder");
        let bytes = std::fs::read(folder.path().join(name)).expect("what was written");
        let piped = read_from("standard input", &bytes[..], &ReadOptions::default())
            .expect("a good stream");
        assert_eq!(piped.events, data.events);
    }
}

#[test]
fn broken_parquet_is_refused_without_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.parquet");
    write_events(&path, &data("u,i,ts,w\nann,bob,3,1\nbob,ann,4,2\n")).expect("a good folder");
    let bytes = std::fs::read(&path).expect("what was written");
    for place in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut broken = bytes.clone();
            broken[place] ^= flip;
            let _ = read_from("x.parquet", &broken[..], &ReadOptions::default());
        }
        assert!(
            read_from("x.parquet", &bytes[..place], &ReadOptions::default()).is_err(),
            "cut at {place}"
        );
    }
}

mod real_data {
    use super::*;
    use lstep_testkit::real_data;

    #[test]
    #[ignore = "needs LSTEP_DATA"]
    fn streams_have_their_known_counts() {
        for (name, nodes, events, times, width) in [
            ("uci", 1_899, 59_835, 58_911, 0),
            ("enron", 184, 125_235, 22_632, 0),
            ("wikipedia", 9_227, 157_474, 152_757, 0),
            ("mooc", 7_144, 411_749, 345_600, 4),
            ("dgb/canparl", 734, 74_478, 14, 1),
            ("dgb/uslegis", 225, 60_396, 12, 1),
            ("email-eu", 986, 332_334, 207_880, 0),
            ("mathoverflow", 24_818, 506_550, 505_784, 0),
        ] {
            let data = read(real_data::events(name), &ReadOptions::default()).expect("real data");
            let mut distinct = data.events.times().to_vec();
            distinct.dedup();
            assert_eq!(
                (data.names.len(), data.events.len(), distinct.len()),
                (nodes, events, times),
                "{name}"
            );
            let folder = name.rsplit('/').next().expect("a path has a last part");
            assert_eq!((data.name.as_str(), data.events.features().width()), (folder, width));
            let node = data.events.at(0).source;
            assert_eq!(data.names.number(node).to_string(), data.names.name(node).to_string());
        }
    }
}
