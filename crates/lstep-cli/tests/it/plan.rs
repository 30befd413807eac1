//! `lstep plan`: what several machines would take, as JSON and as a table.

use lstep_testkit::command::{Place, command, done, quiet_json, refused, text};
use lstep_testkit::small;

#[test]
fn a_plan_has_time_traffic_and_memory_for_each_number_of_ranks() {
    let place = Place::with_events("sample.csv");
    let events = place.at("sample.csv");
    let mut ask =
        vec!["plan", &events, "--model", "graphmixer", "--step", "100", "--seconds", "0.3"];
    small::GRAPHMIXER.iter().for_each(|key| ask.extend(["--set", key]));
    let plan =
        quiet_json(command(&ask).args(["--ranks", "1,2", "--simulate-shards", "1,8", "--json"]));
    assert_eq!((&plan["cost"]["lanes"], &plan["cost"]["events"]), (&2.into(), &100.into()));
    let weights = plan["cost"]["weights"].as_u64().expect("a count");
    let [one, two] = [0, 1].map(|place| &plan["plans"][place]);
    assert_eq!((&one["worth"], &one["traffic_bytes"]), (&"reference".into(), &0.into()));
    // Half of the gradient to the other rank, half of the sum, a loss and a wish to stop.
    assert_eq!(two["traffic_bytes"], 2 * 4 * weights.div_ceil(2) + 9);
    assert!(two["epoch_seconds"].as_f64().expect("seconds") > 0.0);
    assert!(two["memory_bytes"].as_u64() < one["memory_bytes"].as_u64(), "fewer lanes of its own");
    assert_eq!(plan["shards"][0]["remote_share"], 0.0);
    assert!(plan["shards"][1]["remote_share"].as_f64().expect("a share") > 0.7);
    // It keeps nothing for a node: all is in the log, where an event has two features.
    assert_eq!((&plan["state"]["per_node"], &plan["event_bytes"]), (&0.0.into(), &56.into()));

    // A gradient of a few hundred numbers is not worth a network of 30 us.
    let said = text(&done(command(&ask).args(["--ranks", "1,64", "--latency", "3000"])).stdout);
    assert!(said.contains("do not") && said.contains("A model, not a measurement"), "{said}");
    refused(command(&ask).args(["--ranks", "3"]), &["--ranks has 3", "powers of two"]);
}
