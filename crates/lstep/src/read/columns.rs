//! Which column is what: found by the header's names, by a known layout, by position, or as the
//! user says.
//!
//! Names are compared without regard to case and to what joins their words. A column is a feature by default if it is called `w`,
//! `weight`, `f0`, `f1`, ..., or begins with `feat`, `edge_feat` or `msg`; `label`, `idx` and a
//! column without a name never are. Everything else is left aside.

use super::options::{FeatureColumns, Format, ReadOptions};
use crate::error::{Argument, FaultKind, InputFault, Remedy};
use crate::event::Instant;

/// What is done with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Ignored,
    Source,
    Destination,
    Time,
    /// The number of the event's row in a separate feature table.
    Row,
    Feature(Encoding),
}

/// How a field becomes features. All but the first are TGB's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// The number itself.
    Plain,
    /// The base-2 logarithm of a weight, where a weight of 0 counts as 1.
    LogWeight,
    /// A number of words over 5000, twice.
    Words,
    /// Eight character codes.
    Callsign,
    /// Eight character codes, none of them if the text is longer.
    Typecode,
}

impl Encoding {
    /// How many features come out.
    pub(super) fn width(self) -> usize {
        match self {
            Encoding::Plain | Encoding::LogWeight => 1,
            Encoding::Words => 2,
            Encoding::Callsign | Encoding::Typecode => 8,
        }
    }
}

/// What every record of a file is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    /// For every column its role.
    pub roles: Vec<Role>,
    /// For every column its name, or its number from 1 if it has none.
    pub names: Vec<String>,
    /// Whether the first record is data already.
    pub headerless: bool,
    /// Whether the same id as source and as destination names two nodes.
    pub separated: bool,
    /// Whether times lose their fractions, as in TGB.
    pub truncated: bool,
}

/// Usual names of the columns, without regard to case, blanks, `_` and `-`. Those of an earlier list
/// go before those of a later one: a log with a user and a session is about users.
pub(super) const SOURCES: [&[&str]; 3] = [
    &[
        "u",
        "src",
        "source",
        "sourceid",
        "srcid",
        "user",
        "userid",
        "from",
        "fromid",
        "sender",
        "head",
        "node1",
        "sourcenode",
    ],
    &[
        "customer",
        "customerid",
        "client",
        "clientid",
        "visitor",
        "visitorid",
        "member",
        "memberid",
        "buyer",
        "buyerid",
        "account",
        "accountid",
        "uid",
        "username",
        "reviewer",
        "reviewerid",
        "author",
        "authorid",
        "caller",
        "payer",
        "senderid",
        "fromnode",
    ],
    &["session", "sessionid", "device", "deviceid", "ip", "cookie", "cookieid"],
];
pub(super) const DESTINATIONS: [&[&str]; 3] = [
    &[
        "i",
        "v",
        "dst",
        "dest",
        "destination",
        "destinationid",
        "dstid",
        "target",
        "targetid",
        "item",
        "itemid",
        "to",
        "toid",
        "receiver",
        "recipient",
        "tail",
        "node2",
    ],
    &[
        "product",
        "productid",
        "article",
        "articleid",
        "sku",
        "asin",
        "stockcode",
        "movie",
        "movieid",
        "track",
        "trackid",
        "song",
        "songid",
        "book",
        "bookid",
        "video",
        "videoid",
        "content",
        "contentid",
        "document",
        "documentid",
        "business",
        "businessid",
        "merchant",
        "merchantid",
        "seller",
        "sellerid",
        "callee",
        "payee",
        "receiverid",
        "recipientid",
        "tonode",
        "destinationnode",
        "iid",
        "pid",
    ],
    &["page", "pageid", "url", "path", "ad", "adid", "category", "categoryid"],
];
const TIMES: [&[&str]; 3] = [
    &[
        "ts",
        "t",
        "time",
        "timestamp",
        "timestamps",
        "date",
        "datetime",
        "unixts",
        "unixtime",
        "day",
    ],
    &[
        "eventtime",
        "eventtimestamp",
        "eventdate",
        "eventdatetime",
        "eventts",
        "unixtimestamp",
        "epoch",
        "timestampms",
        "timems",
        "tsms",
        "when",
        "happenedat",
        "occurredat",
        "boughtat",
        "purchasedat",
        "purchasetime",
        "purchasedate",
        "orderedat",
        "ordertime",
        "orderdate",
        "orderpurchasetimestamp",
        "invoicedate",
        "transactiontime",
        "transactiondate",
        "transactiontimestamp",
        "visittime",
        "clickedat",
        "viewedat",
        "ratedat",
        "reviewtime",
        "unixreviewtime",
        "requesttime",
        "sentat",
    ],
    &["createdat", "createdtime", "created", "creationdate", "loggedat", "insertedat"],
];

/// A column's name for comparison.
pub(super) fn plain_name(name: &str) -> String {
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}
const NEVER_FEATURES: [&str; 6] = ["label", "state_label", "idx", "index", "edge_idx", ""];

impl Columns {
    /// Numbers of features in a row.
    pub(super) fn width(&self) -> usize {
        self.roles
            .iter()
            .map(|role| if let Role::Feature(encoding) = role { encoding.width() } else { 0 })
            .sum()
    }

    /// Where a role is that every table has.
    pub(super) fn place(&self, wanted: Role) -> usize {
        self.roles.iter().position(|role| *role == wanted).expect("columns have this role")
    }

    /// What is not as in a former file of the same stream.
    pub(super) fn differs_from(&self, former: &Columns) -> Option<String> {
        let used = |columns: &Columns| -> Vec<(Role, String)> {
            let used = columns.roles.iter().zip(&columns.names);
            let mut used: Vec<(Role, String)> = used
                .filter(|(role, _)| **role != Role::Ignored)
                .map(|(role, name)| (*role, name.to_lowercase()))
                .collect();
            // Features come in their order; the three columns of an event may be anywhere.
            used.sort_by_key(|(role, _)| match role {
                Role::Source => 0,
                Role::Destination => 1,
                Role::Time => 2,
                _ => 3,
            });
            used
        };
        let (own, other) = (used(self), used(former));
        let shown = |columns: &[(Role, String)]| {
            let names: Vec<String> = columns.iter().map(|(_, name)| format!("{name:?}")).collect();
            names.join(", ")
        };
        if own != other {
            let (own, other) = (shown(&own), shown(&other));
            return Some(format!("has the columns {own} where the first file has {other}"));
        }
        (self.separated != former.separated)
            .then(|| "tells sources and destinations apart otherwise than the first file".into())
    }

    /// Names of the columns that are left aside.
    pub(super) fn ignored(&self) -> Vec<String> {
        let columns = self.roles.iter().zip(&self.names);
        columns.filter(|(role, _)| **role == Role::Ignored).map(|(_, name)| name.clone()).collect()
    }

    /// The columns of a file from its first record and, where the layout needs it, the number of
    /// fields in the second.
    pub(super) fn find(
        file: &str,
        first: &[String],
        second: Option<usize>,
        format: Format,
        options: &ReadOptions,
    ) -> Result<Columns, InputFault> {
        match format {
            Format::Jodie | Format::TgbWiki => {
                let mut columns = jodie(file, first, second, options)?;
                columns.truncated = format == Format::TgbWiki;
                Ok(columns)
            }
            Format::TgbWeight => tgb(file, first, &[Encoding::LogWeight]),
            Format::TgbComment => tgb(file, first, &[Encoding::Words, Encoding::Plain]),
            Format::TgbFlight => tgb(file, first, &[Encoding::Callsign, Encoding::Typecode]),
            Format::Table | Format::Dgb | Format::Parquet => table(file, first, format, options),
        }
    }
}

/// Whether this is the header of JODIE's layout, which names one column for all features.
pub(super) fn is_jodie(header: &[String]) -> bool {
    header.last().is_some_and(|last| last.eq_ignore_ascii_case("comma_separated_list_of_features"))
}

fn jodie(
    file: &str,
    first: &[String],
    second: Option<usize>,
    options: &ReadOptions,
) -> Result<Columns, InputFault> {
    let count = second.unwrap_or(first.len());
    if first.len() < 3 || count < 3 {
        return Err(too_few(file, first));
    }
    let features = options.features != FeatureColumns::None;
    let roles = (0..count).map(|column| match column {
        0 => Role::Source,
        1 => Role::Destination,
        2 => Role::Time,
        3 => Role::Ignored,
        _ if features => Role::Feature(Encoding::Plain),
        _ => Role::Ignored,
    });
    let names = (0..count).map(|column| match first.get(column) {
        Some(name) if column < 4 => name.clone(),
        // The header has one name for all features, or none: then columns are counted from 1.
        _ => (column + 1).to_string(),
    });
    Ok(Columns {
        roles: roles.collect(),
        names: names.collect(),
        headerless: false,
        separated: true,
        truncated: false,
    })
}

fn tgb(file: &str, first: &[String], encodings: &[Encoding]) -> Result<Columns, InputFault> {
    if first.len() < 3 + encodings.len() {
        return Err(too_few(file, first));
    }
    let mut roles = vec![Role::Time, Role::Source, Role::Destination];
    roles.extend(encodings.iter().map(|&encoding| Role::Feature(encoding)));
    roles.resize(first.len(), Role::Ignored);
    Ok(Columns {
        roles,
        names: first.to_vec(),
        headerless: false,
        separated: false,
        truncated: true,
    })
}

fn table(
    file: &str,
    first: &[String],
    format: Format,
    options: &ReadOptions,
) -> Result<Columns, InputFault> {
    if options.header.is_none() && format != Format::Parquet && counts_from_zero(first) {
        let problem = format!(
            "is {}: that may be an event, or names of columns as pandas writes them",
            first.join(", ")
        );
        let fault = InputFault::new(file, problem, Remedy::SayWhetherHeader);
        return Err(fault.kind(FaultKind::Columns).line(1));
    }
    let headerless =
        options.header.map_or_else(|| first.len() >= 3 && is_data(first), |header| !header);
    let names: Vec<String> = if headerless {
        (1..=first.len()).map(|number| number.to_string()).collect()
    } else {
        first.to_vec()
    };
    let mut roles = vec![Role::Ignored; names.len()];
    let finder = Finder { file, names: &names, headerless };
    let source = finder.place(Argument::Source, options.source.as_deref(), &SOURCES, 0)?;
    let destination =
        finder.place(Argument::Destination, options.destination.as_deref(), &DESTINATIONS, 1)?;
    let time = finder.place(Argument::Time, options.time.as_deref(), &TIMES, 2)?;
    if source == destination || source == time || destination == time {
        let problem = "gives source, destination and time, but two of them are the same column";
        let fault = InputFault::new(file, problem, Remedy::NameThreeColumns);
        return Err(fault.kind(FaultKind::Columns));
    }
    roles[source] = Role::Source;
    roles[destination] = Role::Destination;
    roles[time] = Role::Time;
    if format == Format::Dgb
        && let Some(row) = finder.named("idx")
        && roles[row] == Role::Ignored
    {
        roles[row] = Role::Row;
    }
    let free = |place: usize| roles[place] == Role::Ignored;
    let mut features: Vec<usize> = match &options.features {
        FeatureColumns::None => Vec::new(),
        FeatureColumns::Automatic if headerless => {
            (0..names.len()).filter(|&place| free(place)).collect()
        }
        FeatureColumns::Automatic => (0..names.len())
            .filter(|&place| free(place) && is_feature_name(&names[place]))
            .collect(),
        FeatureColumns::All => {
            let named =
                |place: usize| !NEVER_FEATURES.contains(&names[place].to_lowercase().as_str());
            (0..names.len()).filter(|&place| free(place) && named(place)).collect()
        }
        FeatureColumns::Named(wanted) => {
            let named = wanted.iter().map(|name| finder.wanted(name, Argument::Features));
            named.collect::<Result<_, _>>()?
        }
    };
    features.sort_unstable();
    features.dedup();
    for place in features {
        if matches!(roles[place], Role::Source | Role::Destination | Role::Time) {
            let fault = InputFault::new(file, "is not free to be a feature", Remedy::DropFeature);
            return Err(fault.column(&names[place]));
        }
        roles[place] = Role::Feature(Encoding::Plain);
    }
    Ok(Columns { roles, names, headerless, separated: options.bipartite, truncated: false })
}

/// Whether a first record is what pandas writes as a header if columns have no names: 0, 1, 2 and so
/// on. It may also be an event of node 0 with node 1.
fn counts_from_zero(first: &[String]) -> bool {
    first.iter().enumerate().all(|(place, text)| *text == place.to_string())
}

/// Whether a first record is data: numbers only, save for a date as the time.
fn is_data(first: &[String]) -> bool {
    first.iter().enumerate().all(|(place, text)| {
        text.parse::<f64>().is_ok() || place == 2 && Instant::parse(text).is_some()
    })
}

fn is_feature_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let numbered = name.strip_prefix('f').is_some_and(|digits| {
        !digits.is_empty()
            && digits.trim_start_matches('_').bytes().all(|byte| byte.is_ascii_digit())
    });
    numbered
        || name == "w"
        || name == "weight"
        || ["feat", "edge_feat", "msg"].iter().any(|prefix| name.starts_with(prefix))
}

fn too_few(file: &str, first: &[String]) -> InputFault {
    InputFault::new(
        file,
        format!("has too few columns for this layout: {}", first.join(", ")),
        Remedy::CheckLayout,
    )
    .kind(FaultKind::Columns)
    .line(1)
}

/// Looks for columns and says what there is when one is not found.
struct Finder<'a> {
    file: &'a str,
    names: &'a [String],
    headerless: bool,
}

impl Finder<'_> {
    fn place(
        &self,
        column: Argument,
        wanted: Option<&str>,
        spellings: &[&[&str]],
        position: usize,
    ) -> Result<usize, InputFault> {
        if let Some(name) = wanted {
            return self.wanted(name, column);
        }
        if self.headerless && position < self.names.len() {
            return Ok(position);
        }
        let called = |names: &[&str]| -> Vec<usize> {
            let is = |place: &usize| names.contains(&plain_name(&self.names[*place]).as_str());
            (0..self.names.len()).filter(is).collect()
        };
        let found = spellings.iter().map(|names| called(names)).find(|found| !found.is_empty());
        match found.unwrap_or_default()[..] {
            [place] => Ok(place),
            [] => {
                let problem = format!("has no {} column among {}", column.name(), self.listed());
                // Names of columns are no numbers and no dates.
                let is_value =
                    |name: &String| name.parse::<f64>().is_ok() || Instant::parse(name).is_some();
                let remedy = match self.names.iter().any(is_value) {
                    true => Remedy::NameColumnOrNoHeader(column),
                    false => Remedy::NameColumn(column),
                };
                Err(self.fault(problem, remedy))
            }
            ref found => {
                let several: Vec<String> =
                    found.iter().map(|&place| format!("{:?}", self.names[place])).collect();
                let problem = format!(
                    "has several columns that could be the {}: {}",
                    column.name(),
                    several.join(", ")
                );
                Err(self.fault(problem, Remedy::ChooseColumn(column)))
            }
        }
    }

    /// The column that the user named, exactly, or without regard to case, or by its number from 1.
    fn wanted(&self, name: &str, column: Argument) -> Result<usize, InputFault> {
        let exact = self.names.iter().position(|other| other == name);
        let number = || {
            name.parse::<usize>().ok().filter(|&number| (1..=self.names.len()).contains(&number))
        };
        exact.or_else(|| self.named(name)).or_else(|| number().map(|number| number - 1)).ok_or_else(
            || {
                let problem = format!("has no column {name:?} among {}", self.listed());
                self.fault(problem, Remedy::CorrectColumn(column))
            },
        )
    }

    fn fault(&self, problem: String, remedy: Remedy) -> InputFault {
        InputFault::new(self.file, problem, remedy).kind(FaultKind::Columns).line(1)
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other.eq_ignore_ascii_case(name))
    }

    fn listed(&self) -> String {
        let shown = self
            .names
            .iter()
            .take(20)
            .map(|name| format!("{name:?}"))
            .collect::<Vec<_>>()
            .join(", ");
        if self.names.len() > 20 {
            format!("{shown} and {} more", self.names.len() - 20)
        } else {
            shown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Destination, Ignored, Row, Source, Time};

    const PLAIN: Role = Role::Feature(Encoding::Plain);

    fn found(header: &str, format: Format, options: &ReadOptions) -> Result<Columns, InputFault> {
        let first: Vec<String> = header.split(',').map(String::from).collect();
        Columns::find("f.csv", &first, None, format, options)
    }

    fn roles(header: &str) -> Vec<Role> {
        found(header, Format::Table, &ReadOptions::default()).expect("columns").roles
    }

    #[test]
    fn common_spellings_are_found_in_any_case() {
        assert_eq!(roles("u,i,ts"), [Source, Destination, Time]);
        assert_eq!(roles("Timestamp,Sender,RECEIVER"), [Time, Source, Destination]);
        assert_eq!(roles("to,from,day"), [Destination, Source, Time]);
        assert_eq!(roles("u,v,t"), [Source, Destination, Time]);
    }

    #[test]
    fn shops_and_logs_need_no_flags() {
        assert_eq!(
            roles("event_time,event_type,product_id,category_id,brand,price,user_id,user_session"),
            [Time, Ignored, Destination, Ignored, Ignored, Ignored, Source, Ignored]
        );
        assert_eq!(
            roles("InvoiceNo,StockCode,Quantity,InvoiceDate,CustomerID"),
            [Ignored, Destination, Ignored, Time, Source]
        );
        assert_eq!(roles("Session ID,Timestamp,Item ID"), [Source, Time, Destination]);
        assert_eq!(roles("visitorid,itemid,timestamp"), [Source, Destination, Time]);
        assert_eq!(roles("userId,movieId,rating,timestamp")[..2], [Source, Destination]);
        assert_eq!(roles("created_at,order_date,customer,sku")[..2], [Ignored, Time]);
    }

    #[test]
    fn a_header_is_never_an_event_nor_the_reverse() {
        let error = found("ann,x7,2021-03-04", Format::Table, &ReadOptions::default())
            .expect_err("no header")
            .to_string();
        assert!(error.contains("if it is an event already, pass `no_header`"), "{error}");
        let pandas = found("0,1,2", Format::Table, &ReadOptions::default());
        let error = pandas.expect_err("could be both").to_string();
        assert!(error.contains("pandas") && error.contains("`header`"), "{error}");
        let with = |header, source: Option<&str>| ReadOptions {
            header: Some(header),
            source: source.map(String::from),
            destination: source.map(|_| "1".into()),
            time: source.map(|_| "2".into()),
            ..ReadOptions::default()
        };
        let event = found("0,1,2", Format::Table, &with(false, None)).expect("an event");
        assert!(event.headerless);
        let header = found("0,1,2", Format::Table, &with(true, Some("0"))).expect("a header");
        assert_eq!(header.roles, [Source, Destination, Time]);
    }

    #[test]
    fn weights_and_numbered_columns_are_features_but_labels_are_not() {
        assert_eq!(
            roles("u,i,ts,label,idx,w"),
            [Source, Destination, Time, Ignored, Ignored, PLAIN]
        );
        assert_eq!(
            roles("src,dst,t,f0,F1,feat_x,note,from_page"),
            [Source, Destination, Time, PLAIN, PLAIN, PLAIN, Ignored, Ignored]
        );
        assert_eq!(roles(",u,i,ts,label,idx")[0], Ignored);
    }

    #[test]
    fn feature_columns_can_be_chosen() {
        let with = |features| ReadOptions { features, ..ReadOptions::default() };
        let header = ",u,i,ts,label,idx,w,note";
        let chosen =
            |features| found(header, Format::Table, &with(features)).expect("columns").roles;
        assert_eq!(chosen(FeatureColumns::None)[4..], [Ignored, Ignored, Ignored, Ignored]);
        assert_eq!(chosen(FeatureColumns::All)[4..], [Ignored, Ignored, PLAIN, PLAIN]);
        assert_eq!(
            chosen(FeatureColumns::Named(vec!["label".into(), "8".into()]))[4..],
            [PLAIN, Ignored, Ignored, PLAIN]
        );
        let error = found(header, Format::Table, &with(FeatureColumns::Named(vec!["u".into()])))
            .expect_err("taken");
        assert_eq!(
            error.to_string(),
            "f.csv, column \"u\": is not free to be a feature; take it out of `features`"
        );
    }

    #[test]
    fn the_feature_row_is_only_looked_for_in_its_layout() {
        assert_eq!(
            found("u,i,ts,label,idx", Format::Dgb, &ReadOptions::default()).expect("columns").roles
                [4],
            Row
        );
    }

    #[test]
    fn a_first_row_of_numbers_is_data_by_position() {
        let columns =
            found("1,2,3.5,0.25", Format::Table, &ReadOptions::default()).expect("columns");
        assert!(columns.headerless);
        assert_eq!(columns.roles, [Source, Destination, Time, PLAIN]);
        assert!(
            found("1,2,2021-03-04", Format::Table, &ReadOptions::default())
                .expect("columns")
                .headerless
        );
    }

    #[test]
    fn a_missing_column_is_named_with_what_there_is() {
        let error =
            found("who,whom,ts", Format::Table, &ReadOptions::default()).expect_err("no source");
        assert_eq!(
            error.to_string(),
            "f.csv, line 1: has no source column among \"who\", \"whom\", \"ts\"; name it with `source`"
        );
        let options = ReadOptions { source: Some("whose".into()), ..ReadOptions::default() };
        let error = found("who,whom,ts", Format::Table, &options).expect_err("no such column");
        assert_eq!(
            error.to_string(),
            "f.csv, line 1: has no column \"whose\" among \"who\", \"whom\", \"ts\"; correct `source`"
        );
    }

    #[test]
    fn an_ambiguous_column_is_refused() {
        let error = found("src,user,dst,ts", Format::Table, &ReadOptions::default())
            .expect_err("two sources");
        assert_eq!(
            error.to_string(),
            "f.csv, line 1: has several columns that could be the source: \"src\", \"user\"; choose one with `source`"
        );
        let options = ReadOptions { source: Some("ts".into()), ..ReadOptions::default() };
        let error = found("src,dst,ts", Format::Table, &options).expect_err("twice the same");
        assert!(error.to_string().contains("two of them are the same column"), "{error}");
    }
}
