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

#[test]
fn a_messy_file_is_read_without_its_bad_rows_and_a_run_reads_it_so_again() {
    let place = Place::empty();
    let mut rows = String::new();
    for n in 0..400 {
        let row = format!("u{},i{},{}\n", n % 17, n * 7 % 23, n / 2);
        rows += &row;
        if n % 40 == 0 {
            rows += "u1,,5\n";
            rows += &row;
        }
    }
    place.write("messy.csv", format!("user,item,time\n{rows}"));
    let messy = place.at("messy.csv");
    refused(&["inspect", &messy], &["line 3"]);
    let asked = ["inspect", &messy, "--skip-bad", "--dedup"];
    let output = done(&asked);
    let told = text(&output.stderr);
    for words in ["10 of 420 rows are left out", "item", "10 events are left out"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let stats = json(&[&asked[..], &["--json"]].concat());
    assert_eq!((&stats["events"], &stats["left_out"]["duplicates"]), (&400.into(), &10.into()));
    assert_eq!(stats["left_out"]["faults"][0]["count"], 10);
    let clean = place.at("clean.csv");
    let report = json(&["data", "convert", &messy, &clean, "--skip-bad", "--dedup", "--json"]);
    assert_eq!((&report["events"], &report["left_out"]["duplicates"]), (&400.into(), &10.into()));
    assert!(json(&["inspect", &clean, "--json"]).get("left_out").is_none());
    let run = place.at("run");
    let train = ["train", &messy, "--skip-bad", "--dedup", "--out", &run, "--epochs", "1"];
    let small = ["--set", "model.node_width=8", "--set", "model.time_width=8"];
    let output = done(&[&train[..], &["--model", "jodie"], &small].concat());
    assert!(text(&output.stderr).contains("10 of 420 rows"), "{}", text(&output.stderr));
    // The run remembers how its file is read.
    done(&["evaluate", &run]);
    place.write("new.csv", "user,item,time\nu1,i1,300\n,i1,301\nu1,i1,300\n");
    let new = place.at("new.csv");
    let updated = json(&["update", &run, &new, "--json"]);
    assert_eq!(
        (&updated["new_events"], &updated["left_out"]["duplicates"]),
        (&1.into(), &1.into())
    );
}
