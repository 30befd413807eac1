//! Journeys with files that have faults: all of them are told at once.

use lstep_testkit::command::{Place, done, json, lstep, refused, text};
use serde_json::Value;

#[test]
fn all_faults_of_a_file_are_shown_with_their_columns() {
    let place = Place::empty();
    let rows = "ann,x,1\n,x,2\nbob,y,soon\nbob,y\nann,,3\neve,z,4\n,w,5\n";
    place.write("shop.csv", format!("customer,item,time\n{rows}"));
    let shop = place.at("shop.csv");
    let asked = ["inspect", &shop, "--src", "customer"];
    refused(&asked, &["2 of 7 rows have no fault", "customer", "soon", "line 3"]);
    let output = lstep(&[&asked[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let faults = found["faults"].as_array().expect("a list");
    let of = |column: &str| faults.iter().find(|row| row["column"] == column).expect("a fault");
    assert_eq!((&of("customer")["count"], &of("customer")["first_line"]), (&2.into(), &3.into()));
    assert_eq!(of("time")["example"], "soon");
    assert_eq!(of("row")["first_line"], 5);
}

#[test]
fn columns_are_named_and_odd_things_are_hinted_at() {
    let place = Place::empty();
    let rows: String = (0..200).map(|n| format!("{}|{}|{n}|a\n", n % 6, (n + 1) % 6)).collect();
    place.write("bars.txt", format!("user|item|time|note\n{rows}"));
    let bars = place.at("bars.txt");
    let shown = text(&done(&["inspect", &bars, "--separator", "|"]).stdout);
    assert!(shown.contains("note (left aside)") && shown.contains("user (source)"), "{shown}");
    assert!(shown.contains("bipartite"), "{shown}");
    place.write("bare.txt", "a b 1\nb c 2\n");
    let bare = place.at("bare.txt");
    let stats = json(&["inspect", &bare, "--no-header", "--json"]);
    assert_eq!(stats["events"], 2);
    refused(&["inspect", &bare, "--separator", "||"], &["||", "one character"]);
}
