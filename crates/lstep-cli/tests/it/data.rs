//! Journeys through `lstep data`: the catalogue, downloads from a host on this machine, and
//! conversions there and back.

use crate::host::Host;
use lstep_testkit::command::{Place, json, lstep, refused};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;

/// A zip archive as Zenodo's are: a folder with DGB's three files.
pub(crate) fn archive(events: usize) -> Vec<u8> {
    let mut csv = String::from(",u,i,ts,label,idx\n");
    for event in 0..events {
        csv += &format!(
            "{event},{},{},{},0.0,{}\n",
            1 + event % 7,
            8 + event * 5 % 11,
            event * 10,
            event + 1
        );
    }
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("uci/ml_uci.csv", stored).expect("an entry");
    zip.write_all(csv.as_bytes()).expect("written");
    zip.finish().expect("written").into_inner()
}

pub(crate) fn fetch<'a>(from: &'a str, to: &'a str) -> Vec<&'a str> {
    vec!["data", "fetch", "uci", "--from", from, "--to", to]
}

#[test]
fn the_catalogue_lists_all_datasets_with_what_is_known_of_them() {
    let list = json(&["data", "list", "--json"]);
    let datasets = list.as_array().expect("a list");
    assert_eq!(datasets.len(), 21);
    for entry in datasets {
        for key in [
            "name",
            "nodes",
            "events",
            "duration",
            "edge_features",
            "node_features",
            "licence",
            "source",
            "checksum",
        ] {
            assert!(!entry[key].is_null(), "{key}: {entry}");
        }
    }
    let uci = json(&["data", "list", "UCI", "--json"]);
    assert_eq!((&uci["name"], &uci["events"]), (&Value::from("uci"), &Value::from(59_835)));
    let shown = lstep(&["data", "list"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for word in ["tgbl-flight", "67169570", "CollegeMsg", "CC BY-NC", "zenodo.org/records/7213796"]
    {
        assert!(shown.contains(word), "{word} is missing:\n{shown}");
    }
    refused(&["data", "list", "ucy"], &["ucy", "uci", "tgbl-wiki"]);
}

#[test]
fn a_dataset_is_fetched_unpacked_and_read_and_the_second_time_only_checked() {
    let (place, host) = (Place::empty(), Host::offering("uci.zip", archive(300)));
    let to = place.at("data");
    let mut arguments = fetch(&host.address, &to);
    arguments.push("--json");
    let fetched = json(&arguments);
    assert_eq!(
        (&fetched["checked_against"], &fetched["downloaded"]),
        (&Value::from("nobody"), &Value::from(true))
    );
    assert_eq!(place.names("data/uci"), ["ml_uci.csv", "uci.zip", "uci.zip.sha256"]);
    let sum = fs::read_to_string(place.path("data/uci/uci.zip.sha256")).expect("kept");
    assert_eq!(sum, format!("{}  uci.zip\n", fetched["sha256"].as_str().expect("a hash")));
    let stats = json(&["inspect", fetched["events"].as_str().expect("a path"), "--json"]);
    assert_eq!((&stats["dataset"], &stats["events"]), (&Value::from("uci"), &Value::from(300)));

    let again = json(&arguments);
    assert_eq!(
        (&again["checked_against"], &again["downloaded"]),
        (&Value::from("kept"), &Value::from(false))
    );
    assert_eq!(host.asked().len(), 1, "nothing is downloaded twice");

    let archive = place.path("data/uci/uci.zip");
    let mut bytes = fs::read(&archive).expect("there");
    bytes[100] ^= 1;
    fs::write(&archive, bytes).expect("written");
    refused(&arguments, &["uci.zip", "sha256:", "is expected", "remove it"]);
}

#[test]
fn a_file_that_is_here_is_taken_like_one_from_afar() {
    let place = Place::empty();
    let copy = place.at("from-a-friend.zip");
    fs::write(&copy, archive(50)).expect("written");
    let to = place.at("data");
    assert!(lstep(&fetch(&copy, &to)).status.success());
    assert_eq!(place.names("data/uci"), ["ml_uci.csv", "uci.zip", "uci.zip.sha256"]);
    let (elsewhere, absent) = (place.at("elsewhere"), place.at("absent.zip"));
    refused(&fetch(&absent, &elsewhere), &["absent.zip", "--from"]);
}

#[test]
fn a_file_that_is_not_the_dataset_is_not_kept_under_its_name() {
    let place = Place::empty();
    let (wrong, right, to) = (place.at("page.html"), place.at("right.zip"), place.at("data"));
    fs::write(&wrong, "<html>busy</html>").expect("written");
    fs::write(&right, archive(50)).expect("written");
    refused(&fetch(&wrong, &to), &["page.html", "not a zip archive"]);
    assert_eq!(place.names("data/uci"), [""; 0]);
    assert!(lstep(&fetch(&right, &to)).status.success());
    // One that was there before is not thrown away, but the way out is named.
    fs::remove_file(place.at("data/uci/ml_uci.csv")).expect("removed");
    fs::remove_file(place.at("data/uci/uci.zip.sha256")).expect("removed");
    fs::copy(&wrong, place.at("data/uci/uci.zip")).expect("copied");
    refused(&fetch(&right, &to), &["there before", "remove", "uci.zip"]);
    assert_eq!(place.names("data/uci"), ["uci.zip"]);
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let bytes = archive(5_000);
    let (place, host) = (Place::empty(), Host::offering("uci.zip", bytes.clone()));
    let to = place.at("data");
    host.change(|offer| offer.cut_after = Some(70_000));
    refused(&fetch(&host.address, &to), &[&host.address, "was cut after 70000", "goes on"]);
    assert_eq!(place.names("data/uci"), ["uci.zip.part", "uci.zip.part.version"]);
    assert_eq!(fs::read(place.path("data/uci/uci.zip.part")).expect("kept"), bytes[..70_000]);

    let mut arguments = fetch(&host.address, &to);
    arguments.push("--json");
    let fetched = json(&arguments);
    assert_eq!(host.asked(), ["", "bytes=70000-"]);
    assert_eq!(fetched["resumed_from"], 70_000);
    assert_eq!(fs::read(place.path("data/uci/uci.zip")).expect("whole"), bytes);
    assert_eq!(place.names("data/uci"), ["ml_uci.csv", "uci.zip", "uci.zip.sha256"]);
}

#[test]
fn two_versions_of_a_file_are_never_joined() {
    let (place, host) = (Place::empty(), Host::offering("uci.zip", archive(5_000)));
    let to = place.at("data");
    host.change(|offer| offer.cut_after = Some(70_000));
    assert_eq!(lstep(&fetch(&host.address, &to)).status.code(), Some(2));
    let newer = archive(6_000);
    host.change(|offer| (offer.bytes, offer.version) = (newer.clone(), "\"second\""));
    assert!(lstep(&fetch(&host.address, &to)).status.success());
    assert_eq!(fs::read(place.path("data/uci/uci.zip")).expect("whole"), newer);
}

#[test]
fn a_host_without_ranges_sends_all_again() {
    let bytes = archive(5_000);
    let (place, host) = (Place::empty(), Host::offering("uci.zip", bytes.clone()));
    let to = place.at("data");
    host.change(|offer| (offer.cut_after, offer.ranges) = (Some(70_000), false));
    assert_eq!(lstep(&fetch(&host.address, &to)).status.code(), Some(2));
    assert!(lstep(&fetch(&host.address, &to)).status.success());
    assert_eq!(fs::read(place.path("data/uci/uci.zip")).expect("whole"), bytes);
}

#[test]
fn a_part_that_was_whole_when_it_was_stopped_is_taken() {
    let bytes = archive(100);
    let (place, host) = (Place::empty(), Host::offering("uci.zip", bytes.clone()));
    let to = place.at("data");
    fs::create_dir_all(place.path("data/uci")).expect("a folder");
    fs::write(place.path("data/uci/uci.zip.part"), &bytes).expect("written");
    fs::write(place.path("data/uci/uci.zip.part.version"), "\"first\"").expect("written");
    assert!(lstep(&fetch(&host.address, &to)).status.success());
    assert_eq!(host.asked(), [format!("bytes={}-", bytes.len())]);
    assert_eq!(fs::read(place.path("data/uci/uci.zip")).expect("whole"), bytes);
}

#[test]
fn a_wrong_checksum_is_refused_and_nothing_is_left() {
    let (place, host) = (Place::empty(), Host::offering("uci.zip", archive(100)));
    let to = place.at("data");
    for wrong in [format!("sha256:{}", "0".repeat(64)), format!("md5:{}", "0".repeat(32))] {
        let mut arguments = fetch(&host.address, &to);
        arguments.extend(["--checksum", &wrong]);
        refused(&arguments, &[&host.address, &wrong, "nothing was kept", "--checksum"]);
        assert!(place.names("data/uci").is_empty(), "{:?}", place.names("data/uci"));
    }
    // The catalogue knows UN Trade's.
    let host = Host::offering("UNtrade.zip", archive(100));
    refused(
        &["data", "fetch", "UN Trade", "--from", &host.address, "--to", &to],
        &["md5:b7b59f4606e25588612d96403690c306", "is expected"],
    );
    refused(&["data", "fetch", "uci", "--checksum", "md5:12"], &["md5:12", "sha256:HEX"]);
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_address_and_a_remedy() {
    let (place, host) = (Place::empty(), Host::offering("other.zip", Vec::new()));
    let to = place.at("data");
    let address = format!("{}/uci.zip", host.address);
    refused(
        &fetch(&host.address, &to),
        &[&address, "404", "https://zenodo.org/records/7213796", "--from"],
    );
    assert!(place.names("data/uci").is_empty());
}

#[test]
fn without_a_network_it_says_what_could_not_be_reached() {
    let place = Place::empty();
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let (address, to) = (format!("http://{closed}"), place.at("data"));
    refused(&fetch(&address, &to), &["cannot reach", &address, "check the network", "--from"]);
    assert!(place.names("data/uci").is_empty());
}

fn generated(place: &Place, name: &str, more: &[&str]) -> String {
    let path = place.at(name);
    let small = ["--events", "2000", "--nodes", "150", "--communities", "4", "--features", "2"];
    let arguments: Vec<&str> =
        ["generate", &path].into_iter().chain(small).chain(more.iter().copied()).collect();
    assert!(lstep(&arguments).status.success());
    path
}

fn convert(place: &Place, from: &str, to: &str, more: &[&str]) -> Value {
    let (from, to) = (place.at(from), place.at(to));
    json(&[&["data", "convert", &from, &to, "--json"], more].concat())
}

fn same(left: &Path, right: &Path) {
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    assert!(read(left) == read(right), "{} is not {}", left.display(), right.display());
}

#[test]
fn events_come_back_from_every_form_to_the_byte() {
    let place = Place::empty();
    generated(&place, "first.csv", &[]);
    let forms = ["a.parquet", "ml_a.csv", "a.tsv.gz", "ml_b.csv.zst", "a.csv.zst", "last.csv"];
    let mut from = "first.csv";
    for to in forms {
        let report = convert(&place, from, to, &[]);
        assert_eq!(report["events"], 2000, "{to}");
        // DGB's files have a column of labels, which no reader here keeps.
        let remarks = report["remarks"].to_string();
        assert_eq!(remarks == "[]", !from.starts_with("ml_"), "{from}: {remarks}");
        assert!(!remarks.contains("loss"), "{from}: {remarks}");
        from = to;
    }
    same(&place.path("first.csv"), &place.path("last.csv"));
    assert_eq!(
        convert(&place, "first.csv", "ml_c.csv", &[])["files"].as_array().map(Vec::len),
        Some(3)
    );
}

#[test]
fn two_kinds_of_nodes_come_back_from_jodie_and_parquet() {
    let place = Place::empty();
    generated(&place, "first.csv", &["--sources", "100"]);
    convert(&place, "first.csv", "jodie.csv", &["--layout", "jodie"]);
    let report = convert(&place, "jodie.csv", "sides.parquet", &[]);
    assert!(
        report["remarks"].to_string().contains("state_label"),
        "what a reader left aside is said: {report}"
    );
    let report = convert(&place, "sides.parquet", "last.csv", &[]);
    assert!(report["remarks"].to_string().contains("--bipartite"), "{report}");
    same(&place.path("first.csv"), &place.path("last.csv"));
}

#[test]
fn what_a_form_cannot_hold_is_refused_or_said() {
    let place = Place::empty();
    fs::write(
        place.path("mail.csv"),
        "src,dst,t,label\nann,bob,2021-03-04,1\nbob,ann,2021-03-05,0\n",
    )
    .expect("written");
    let (mail, dgb, jodie) = (place.at("mail.csv"), place.at("ml_mail.csv"), place.at("jodie.csv"));
    refused(
        &["data", "convert", &mail, &dgb],
        &["ml_mail.csv", "text ids", "dates become numbers", "--lossy"],
    );
    refused(
        &["data", "convert", &mail, &jodie, "--layout", "jodie"],
        &["2 nodes are both", "--lossy"],
    );
    assert_eq!(place.names("."), ["mail.csv"], "nothing is left of a refusal");
    let report = convert(&place, "mail.csv", "ml_mail.csv", &["--lossy"]);
    let said = report["remarks"].to_string();
    for word in ["loss", "text ids become integers", "seconds since 1970", "label"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let written = fs::read_to_string(&dgb).expect("written");
    assert_eq!(written, ",u,i,ts,label,idx\n0,1,2,1614816000,0.0,1\n1,2,1,1614902400,0.0,2\n");
    refused(
        &["data", "convert", &mail, &place.at("x.csv"), "--layout", "dgb", "--lossy"],
        &["ml_NAME.csv"],
    );
    refused(&["data", "convert", &mail, &mail], &["it is the file that is read"]);
    for (name, layout) in [
        ("tgbl-coin_edgelist.csv", "table"),
        ("ml_x.csv", "table"),
        ("x.parquet", "jodie"),
        ("x.csv", "parquet"),
    ] {
        refused(
            &["data", "convert", &mail, &place.at(name), "--layout", layout, "--lossy"],
            &[name, "this"],
        );
    }
}

#[test]
fn ids_from_zero_and_ids_too_far_apart_are_said_or_refused() {
    let place = Place::empty();
    fs::write(place.path("zero.csv"), "u,i,t\n0,1,5\n1,2,6\n").expect("written");
    refused(
        &["data", "convert", &place.at("zero.csv"), &place.at("ml_z.csv")],
        &["ids grow by 1", "--lossy"],
    );
    convert(&place, "zero.csv", "ml_z.csv", &["--lossy"]);
    let written = fs::read_to_string(place.path("ml_z.csv")).expect("written");
    assert_eq!(written, ",u,i,ts,label,idx\n0,1,2,5,0.0,1\n1,2,3,6,0.0,2\n");
    fs::write(place.path("far.csv"), "u,i,t\n1,9000000000000,5\n").expect("written");
    refused(
        &["data", "convert", &place.at("far.csv"), &place.at("ml_far.csv")],
        &["9000000000000", "Parquet"],
    );
}

#[test]
fn node_features_travel_with_their_events() {
    let place = Place::empty();
    fs::write(place.path("first.csv"), "source,destination,time\n3,1,5\n1,2,6\n").expect("written");
    fs::write(place.path("nodes.csv"), "id,f0,f1\n3,0.5,1.0\n1,-2.0,3.0\n2,0.25,0.0\n")
        .expect("written");
    let nodes = place.at("nodes.csv");
    let report = convert(&place, "first.csv", "ml_n.csv", &["--node-features", &nodes]);
    assert_eq!(report["remarks"], serde_json::json!([]), "this layout holds them");
    let report = convert(&place, "ml_n.csv", "second.parquet", &[]);
    assert!(
        report["files"][1].as_str().expect("a second file").ends_with("second.nodes.csv"),
        "{report}"
    );
    same(&place.path("nodes.csv"), &place.path("second.nodes.csv"));
    let nodes = place.at("second.nodes.csv");
    convert(&place, "second.parquet", "last.csv", &["--node-features", &nodes]);
    same(&place.path("first.csv"), &place.path("last.csv"));
    same(&place.path("nodes.csv"), &place.path("last.nodes.csv"));
}

#[test]
fn a_file_that_has_moved_is_followed_and_a_circle_ends() {
    let (place, host) = (Place::empty(), Host::offering("uci.zip", archive(100)));
    let (moved, circle) =
        (format!("{}/moved/uci.zip", host.address), format!("{}/circle/uci.zip", host.address));
    let to = place.at("circle");
    refused(&fetch(&circle, &to), &["/circle/uci.zip", "more than 10 times"]);
    let fetched = lstep(&fetch(&moved, &place.at("data")));
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    assert!(place.holds("data/uci/ml_uci.csv"));
}

#[cfg(unix)]
#[test]
fn a_part_that_is_a_link_is_not_followed() {
    let (place, host) = (Place::empty(), Host::offering("uci.zip", archive(100)));
    fs::create_dir_all(place.path("data/uci")).expect("a folder");
    place.write("victim", "precious");
    std::os::unix::fs::symlink(place.path("victim"), place.path("data/uci/uci.zip.part"))
        .expect("a link");
    refused(&fetch(&host.address, &place.at("data")), &["uci.zip.part", "is no file", "remove it"]);
    assert_eq!(place.words("victim"), "precious");
}
