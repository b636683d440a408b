//! Rows of figures, as a table for people or as JSON for programs.

use serde_json::{Map, Value};

/// What was measured, row by row; all rows have the same columns.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    rows: Vec<Vec<(&'static str, Figure)>>,
    notes: Vec<String>,
}

/// A figure and how it is shown.
#[derive(Debug)]
pub(super) enum Figure {
    Count(usize),
    /// With so many decimals.
    Number(f64, usize),
    /// There is none.
    None,
}

impl Figure {
    fn text(&self) -> String {
        match self {
            Self::Count(count) => grouped(&count.to_string()),
            Self::Number(number, decimals) => grouped(&format!("{number:.decimals$}")),
            Self::None => "-".to_owned(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Count(count) => (*count).into(),
            Self::Number(number, _) => (*number).into(),
            Self::None => Value::Null,
        }
    }
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self { json, rows: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn row(&mut self, row: Vec<(&'static str, Figure)>) {
        self.rows.push(row);
    }

    /// Something to say below the table.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(super) fn print(&self) {
        if self.json {
            for row in &self.rows {
                let object: Map<_, _> =
                    row.iter().map(|(name, figure)| (json_name(name), figure.value())).collect();
                println!("{}", Value::Object(object));
            }
            return;
        }
        println!("{}", self.table());
        self.notes.iter().for_each(|note| println!("{note}"));
    }

    fn table(&self) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let head: Vec<String> = first.iter().map(|(name, _)| (*name).to_owned()).collect();
        let body = self.rows.iter().map(|row| row.iter().map(|(_, figure)| figure.text()).collect());
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..first.len()).map(width).collect();
        let shown = lines.iter().map(|line| {
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
            cells.join("   ")
        });
        shown.collect::<Vec<_>>().join("\n")
    }
}

/// `jobs/s` as `jobs_per_second` would be nicer, but a name that follows from the heading needs no list.
fn json_name(heading: &str) -> String {
    let plain = heading.replace("/s", " per second").replace(", ", " ").replace('µ', "u");
    plain.replace(' ', "_")
}

/// Thousands apart.
fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let mut shown = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    if let Some(rest) = rest {
        shown.push('.');
        shown.push_str(rest);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_its_numbers_are_readable() {
        let mut report = Report::new(false);
        report.row(vec![
            ("slots", Figure::Count(20)),
            ("jobs/s", Figure::Number(123_456.7, 0)),
            ("ratio", Figure::None),
        ]);
        report.row(vec![
            ("slots", Figure::Count(1000)),
            ("jobs/s", Figure::Number(99.0, 0)),
            ("ratio", Figure::Number(3.25, 1)),
        ]);
        assert_eq!(
            report.table(),
            "slots    jobs/s   ratio\n   20   123,457       -\n1,000        99     3.2"
        );
    }

    #[test]
    fn names_in_json_need_no_quoting() {
        assert_eq!(json_name("jobs/s"), "jobs_per_second");
        assert_eq!(json_name("p50, µs"), "p50_us");
    }
}
