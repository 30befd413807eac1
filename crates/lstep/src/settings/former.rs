//! Settings that were called otherwise in earlier versions.
//!
//! Stored settings are read through serde aliases. Where tables are laid over each other, though, a
//! former name would stand beside today's, so it is renamed first.

use toml::{Table, Value};

/// Table, former name, today's name.
const RENAMED: [(&[&str], &str, &str); 4] = [
    (&["train"], "products", "matmul"),
    (&["train"], "average", "ema"),
    (&["model", "pair"], "traces", "counts"),
    (&["model", "pair"], "company", "neighbour_popularity"),
];

/// Gives settings of a table their names of today.
pub(super) fn rename(table: &mut Table) {
    for (path, former, today) in RENAMED {
        let Some(inner) = descend(table, path) else { continue };
        if let Some(value) = inner.remove(former) {
            inner.entry(today).or_insert(value);
        }
    }
}

fn descend<'a>(table: &'a mut Table, path: &[&str]) -> Option<&'a mut Table> {
    path.iter().try_fold(table, |table, name| table.get_mut(*name).and_then(Value::as_table_mut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_name_becomes_todays_and_todays_wins() {
        let mut table: Table =
            "[train]\naverage = 0.5\nproducts = 'split'\nmatmul = 'f32'\n[model.pair]\ncompany = true\n"
                .parse()
                .expect("TOML");
        rename(&mut table);
        let today: Table =
            "[train]\nema = 0.5\nmatmul = 'f32'\n[model.pair]\nneighbour_popularity = true\n"
                .parse()
                .expect("TOML");
        assert_eq!(table, today);
    }
}
