//! Journeys of a model that is not ours: its questions go out as a table, its scores come back.

use lstep_testkit::command::{Place, done, json, refused, text};
use serde_json::Value;

/// Scores a pair by how often it met before the questions, as any script could.
fn scored_by_counts(place: &Place, questions: &str, out: &str, change: impl Fn(f64) -> f64) {
    let events = place.words("events.csv");
    let pair = |line: &str| line.split(',').take(2).collect::<Vec<_>>().join(",");
    let met: Vec<String> = events.lines().skip(1).take(2_550).map(pair).collect();
    let words = place.words(questions);
    let mut lines = words.lines();
    assert_eq!(lines.next(), Some("source,destination,time"));
    let row = |line: &str| {
        let count = met.iter().filter(|known| **known == pair(line)).count();
        format!("{line},{}\n", change(count as f64))
    };
    let rows: String = lines.map(row).collect();
    place.write(out, format!("source,destination,time,score\n{rows}"));
}

#[test]
fn scores_of_another_model_stand_in_the_table_with_an_interval() {
    let place = Place::new();
    let (events, questions) = (place.events(), place.at("q.csv"));
    let flags = ["--negatives", "random", "--per-event", "20", "--questions", "100"];
    let evaluate = |more: &[&str]| -> Vec<String> {
        let words = [&["evaluate", &events], &flags[..], more].concat();
        words.into_iter().map(String::from).collect()
    };
    let said = json(&evaluate(&["--write-questions", &questions, "--json"]));
    let words = place.words("q.csv");
    assert_eq!(said["questions"], words.lines().count() - 1);
    scored_by_counts(&place, "q.csv", "mine.csv", |count| count);
    let mine = place.at("mine.csv");
    let report = json(&evaluate(&["--model", "edgebank", "--scores", &mine, "--json"]));
    let rows = report["results"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["name"], &rows[1]["name"]), (&"edgebank".into(), &"mine".into()));
    assert_eq!(rows[0]["negatives_sha256"], rows[1]["negatives_sha256"]);
    let mrr = |row: &Value| row["mrr"].as_f64().expect("ranks");
    assert!(mrr(&rows[1]) > 0.1, "{report}");
    let against = &report["against_counting"][0];
    let difference = mrr(&rows[1]) - mrr(&rows[0]);
    assert!((against["difference"].as_f64().expect("one") - difference).abs() < 1e-12);
    let shown = done(&evaluate(&["--scores", &mine, "--name", "counts_of_mine"]));
    assert!(text(&shown.stdout).contains("counts_of_mine"), "{}", text(&shown.stdout));
    assert!(text(&shown.stdout).contains("95 % interval"));
    let latex = done(&evaluate(&["--scores", &mine, "--name", "counts_of_mine", "--latex"]));
    assert!(text(&latex.stdout).contains("counts\\_of\\_mine &"), "{}", text(&latex.stdout));
    let page = place.at("models.html");
    done(&evaluate(&["--scores", &mine, "--name", "counts_of_mine", "--html", &page]));
    let page = place.words("models.html");
    for words in ["<h1>Models on", "counts_of_mine", "edgebank", "95 % interval", "SHA-256"] {
        assert!(page.contains(words), "{words}");
    }

    // The order of scores is all that counts.
    scored_by_counts(&place, "q.csv", "scaled.csv", |count| 7.0 * count - 3.0);
    let scaled = json(&evaluate(&["--scores", &place.at("scaled.csv"), "--json"]));
    assert_eq!(mrr(&scaled["results"][1]), mrr(&rows[1]));
}

#[test]
fn faults_of_a_file_of_scores_are_told_with_their_place() {
    let place = Place::new();
    let (events, questions) = (place.events(), place.at("q.csv"));
    let flags = ["--negatives", "random", "--questions", "10"];
    let evaluate = |more: &[&str]| -> Vec<String> {
        let words = [&["evaluate", &events], &flags[..], more].concat();
        words.into_iter().map(String::from).collect()
    };
    done(&evaluate(&["--write-questions", &questions]));
    refused(&evaluate(&["--write-questions", &questions]), &["q.csv", "exists"]);
    refused(&evaluate(&["--write-questions", &place.at("q.doc")]), &["q.doc", ".parquet"]);
    let scores = place.at("mine.csv");
    let check = |change: &dyn Fn(&str) -> String, words: &[&str]| {
        scored_by_counts(&place, "q.csv", "mine.csv", |count| count);
        place.write("mine.csv", change(&place.words("mine.csv")));
        refused(&evaluate(&["--scores", &scores]), words);
    };
    let without_last = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[..lines.len() - 1].join("\n")
    };
    check(&without_last, &["mine.csv", "has no score for source", "score every question"]);
    check(&|text| text.replacen("score", "logit", 1), &["no column score", "logit"]);
    check(&|text| text.replacen(",0\n", ",NaN\n", 1), &["line", "\"NaN\"", "finite"]);
    check(&|text| format!("{text}nobody,1,2,3\n"), &["line", "nobody", "no event"]);
    scored_by_counts(&place, "q.csv", "mine.csv", |count| count);
    refused(
        &evaluate(&["--scores", &scores, "--name", "edgebank"]),
        &["edgebank", "choose another"],
    );
    refused(&evaluate(&["--name", "x"]), &["--scores"]);
}
