//! What a caller can do about an error, and how each front end says it.
//!
//! The same remedy is `name it with --time` on the command line, `name it with time=` in Python and
//! ``name it with `time` `` in a service that takes JSON. A [`Remedy`] is therefore data. Its
//! sentence is written once, here; a [`Front`] fills in how its users write an [`Argument`].

use std::borrow::Cow;
use std::fmt;

/// Something a caller can pass, under whatever name a front end gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Argument {
    /// The column of sources.
    Source,
    /// The column of destinations.
    Destination,
    /// The column of times.
    Time,
    /// How times are written.
    TimeFormat,
    /// Whether the first line is no header.
    NoHeader,
    /// Whether the first line is a header.
    Header,
    /// The columns that are features.
    Features,
    /// The table of node features.
    NodeFeatures,
    /// Whether sources and destinations are different kinds of nodes.
    Bipartite,
    /// Whether events are sorted by time when they are read.
    Sort,
    /// The layout of a file that is written.
    Layout,
    /// Whether a conversion may lose something.
    Lossy,
    /// How many of the nodes of a synthetic stream are sources.
    Sources,
    /// Where results go.
    Out,
    /// The run or grid that is resumed.
    Resume,
    /// Further events that a model observes before it is asked.
    Events,
    /// The name of a dataset.
    Dataset,
    /// The evaluation protocol.
    Protocol,
    /// Where validation and test begin.
    Split,
    /// The share of nodes held out of training.
    HeldOut,
    /// Negatives for each event.
    PerEvent,
    /// How many events are asked about.
    Questions,
    /// The seeds of a grid.
    Seeds,
    /// How many cells of a grid run at once.
    Jobs,
    /// How many points of a search are drawn at random.
    Random,
}

impl Argument {
    /// All of them.
    pub const ALL: [Argument; 25] = [
        Argument::Source,
        Argument::Destination,
        Argument::Time,
        Argument::TimeFormat,
        Argument::NoHeader,
        Argument::Header,
        Argument::Features,
        Argument::NodeFeatures,
        Argument::Bipartite,
        Argument::Sort,
        Argument::Layout,
        Argument::Lossy,
        Argument::Sources,
        Argument::Out,
        Argument::Resume,
        Argument::Events,
        Argument::Dataset,
        Argument::Protocol,
        Argument::Split,
        Argument::HeldOut,
        Argument::PerEvent,
        Argument::Questions,
        Argument::Seeds,
        Argument::Jobs,
        Argument::Random,
    ];

    /// Its name as an identifier, for example `node_features`.
    pub fn name(self) -> &'static str {
        match self {
            Argument::Source => "source",
            Argument::Destination => "destination",
            Argument::Time => "time",
            Argument::TimeFormat => "time_format",
            Argument::NoHeader => "no_header",
            Argument::Header => "header",
            Argument::Features => "features",
            Argument::NodeFeatures => "node_features",
            Argument::Bipartite => "bipartite",
            Argument::Sort => "sort",
            Argument::Layout => "layout",
            Argument::Lossy => "lossy",
            Argument::Sources => "sources",
            Argument::Out => "out",
            Argument::Resume => "resume",
            Argument::Events => "events",
            Argument::Dataset => "dataset",
            Argument::Protocol => "protocol",
            Argument::Split => "split",
            Argument::HeldOut => "held_out",
            Argument::PerEvent => "per_event",
            Argument::Questions => "questions",
            Argument::Seeds => "seeds",
            Argument::Jobs => "jobs",
            Argument::Random => "random",
        }
    }
}

/// A way in which people call the library, and how arguments are written there.
pub trait Front {
    /// An argument as users of this front end write it.
    fn argument(&self, argument: Argument) -> String;

    /// An argument with a value.
    fn assigned(&self, argument: Argument, value: &str) -> String;

    /// A setting of a run with a value, for example `protocol.step=20`.
    fn setting(&self, key: &str, value: &str) -> String {
        format!("{key}={value}")
    }

    /// The whole remedy in this front end's words, where the common sentence does not fit.
    fn remedy(&self, _remedy: &Remedy) -> Option<String> {
        None
    }
}

/// The plain front: arguments are identifiers, as in JSON. [`Error`](super::Error)'s `Display`
/// speaks like this.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Front for Plain {
    fn argument(&self, argument: Argument) -> String {
        format!("`{}`", argument.name())
    }

    fn assigned(&self, argument: Argument, value: &str) -> String {
        format!("{} {value}", self.argument(argument))
    }
}

/// Keyword arguments, as Python has them: `time=`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keywords;

impl Front for Keywords {
    fn argument(&self, argument: Argument) -> String {
        format!("{}=", argument.name())
    }

    fn assigned(&self, argument: Argument, value: &str) -> String {
        match value.parse::<f64>() {
            Ok(_) => format!("{}={value}", argument.name()),
            Err(_) => format!("{}={value:?}", argument.name()),
        }
    }
}

/// What a caller can do about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// A sentence that is the same in every front end.
    Text(Cow<'static, str>),
    /// No column was found for this: name it.
    NameColumn(Argument),
    /// No column was found for this, and the first line looks like an event: name it, or say that
    /// there is no header.
    NameColumnOrNoHeader(Argument),
    /// The first line may be a header or an event.
    SayWhetherHeader,
    /// Several columns could be meant: choose one.
    ChooseColumn(Argument),
    /// The column that was named does not exist.
    CorrectColumn(Argument),
    /// Source, destination and time have to be three columns.
    NameThreeColumns,
    /// The columns do not fit the layout that the file's name promises.
    CheckLayout,
    /// A column is a feature and something else as well.
    DropFeature,
    /// A column holds no features: do something about the value, if anything is said, or choose
    /// other columns.
    OtherFeatures(Option<&'static str>),
    /// A column was left aside, but can be a feature.
    KeepAsFeature,
    /// A column holds no ids.
    WriteIds,
    /// A column holds no times.
    WriteTimes,
    /// Events are not in the order of time.
    Sort,
    /// A file is only read as it was meant with this argument.
    ReadWith(Argument),
    /// A file's name promises another layout.
    OtherLayout,
    /// What a layout cannot hold has to be given up, or another layout chosen.
    AcceptLoss,
    /// A synthetic stream needs two kinds of nodes.
    TwoKindsOfNodes,
    /// A model that is not trained can be evaluated as it is.
    EvaluateInstead,
    /// A folder has to be one that training made.
    NameRun,
    /// The events of the run in this folder have moved.
    MovedEvents(String),
    /// The run in this folder has to be trained further.
    ResumeRun(String),
    /// The folder is taken: resume what is in it, or choose another.
    ResumeOrOtherFolder,
    /// The folder is taken by something else.
    OtherFolder,
    /// The results of a comparison have to be written again.
    RepeatComparison,
    /// Steps have too many events; this many would do.
    ShorterSteps(u64),
    /// So many processes each need a lane of a batch.
    Lanes(usize),
    /// These arguments do not apply.
    LeaveOut(&'static [Argument]),
    /// Negatives or questions of this kind belong to this protocol.
    UseProtocol(&'static str),
    /// A part of the stream has no events.
    OtherSplit,
    /// There are no new nodes to ask about.
    HoldOutNodes,
    /// A choice depends on which dataset it is.
    NameDataset,
    /// A range has no list of values.
    DrawOrList,
    /// The seeds of a grid are an argument, not a setting.
    NameSeeds,
    /// There are too many threads.
    FewerJobs,
    /// A node is not known.
    AddEvents,
}

impl Remedy {
    /// A sentence that is the same in every front end.
    pub const fn text(text: &'static str) -> Remedy {
        Remedy::Text(Cow::Borrowed(text))
    }

    /// The remedy as users of a front end should read it.
    pub fn render(&self, front: &dyn Front) -> String {
        front.remedy(self).unwrap_or_else(|| self.sentence(front))
    }

    fn sentence(&self, front: &dyn Front) -> String {
        use Argument::{Destination, Features, Source, Time};
        let say = |argument| front.argument(argument);
        match self {
            Remedy::Text(text) => text.to_string(),
            Remedy::NameColumn(argument) => format!("name it with {}", say(*argument)),
            Remedy::NameColumnOrNoHeader(argument) => format!(
                "if it is an event already, pass {}, else name the column with {}",
                say(Argument::NoHeader),
                say(*argument)
            ),
            Remedy::SayWhetherHeader => format!(
                "pass {} if it is an event, or {}",
                say(Argument::NoHeader),
                say(Argument::Header)
            ),
            Remedy::ChooseColumn(argument) => format!("choose one with {}", say(*argument)),
            Remedy::CorrectColumn(argument) => format!("correct {}", say(*argument)),
            Remedy::NameThreeColumns => {
                format!(
                    "name three columns with {}, {} and {}",
                    say(Source),
                    say(Destination),
                    say(Time)
                )
            }
            Remedy::CheckLayout => format!(
                "check that the file is what its name says, or rename it and name the columns \
                 with {}, {} and {}",
                say(Source),
                say(Destination),
                say(Time)
            ),
            Remedy::DropFeature => format!("take it out of {}", say(Features)),
            Remedy::OtherFeatures(None) => {
                format!("choose other columns with {}", say(Features))
            }
            Remedy::OtherFeatures(Some(first)) => {
                format!("{first}, or choose other columns with {}", say(Features))
            }
            Remedy::KeepAsFeature => format!("{} can name it", say(Features)),
            Remedy::WriteIds => format!(
                "write ids as integers or text, or name other columns with {} and {}",
                say(Source),
                say(Destination)
            ),
            Remedy::WriteTimes => format!(
                "write integers, decimals or ISO 8601, say how it is written with {}, or name the \
                 right column with {}",
                say(Argument::TimeFormat),
                say(Time)
            ),
            Remedy::Sort => format!("sort the file by time or pass {}", say(Argument::Sort)),
            Remedy::ReadWith(argument) => format!("read it with {}", say(*argument)),
            Remedy::OtherLayout => {
                format!("choose another, or another {}", say(Argument::Layout))
            }
            Remedy::AcceptLoss => {
                format!("convert to Parquet, or accept it with {}", say(Argument::Lossy))
            }
            Remedy::TwoKindsOfNodes => {
                format!("make a stream of two kinds of nodes, with {}", say(Argument::Sources))
            }
            Remedy::EvaluateInstead => "evaluate it instead".into(),
            Remedy::MovedEvents(folder) => {
                format!("put it back, or tell the run {folder} where it is now by an update")
            }
            Remedy::NameRun => "name the folder of a trained run".into(),
            Remedy::ResumeRun(_) => "resume it until an epoch is finished".into(),
            Remedy::ResumeOrOtherFolder => {
                format!("go on with {}, or choose another folder", say(Argument::Resume))
            }
            Remedy::OtherFolder => {
                format!("choose another {}, or remove this folder", say(Argument::Out))
            }
            Remedy::RepeatComparison => "make the comparison anew".into(),
            Remedy::ShorterSteps(events) => format!(
                "set fewer events, for example {}",
                front.setting("protocol.step", &events.to_string())
            ),
            Remedy::Lanes(ranks) => format!(
                "begin with at least one lane for each, {}, or start fewer ranks",
                front.setting("train.lanes", &ranks.to_string())
            ),
            Remedy::LeaveOut(arguments) => {
                let names: Vec<String> = arguments.iter().map(|&argument| say(argument)).collect();
                format!("leave out {}", names.join(" and "))
            }
            Remedy::UseProtocol(name) => {
                format!("they belong to {}", front.assigned(Argument::Protocol, name))
            }
            Remedy::OtherSplit => format!(
                "give a longer stream, or under protocol stream other shares: {} of an \
                 evaluation, protocol.split of a run or grid",
                say(Argument::Split)
            ),
            Remedy::HoldOutNodes => format!(
                "hold some out of training (protocol.held_out=0.1 of a run or grid, {} of an \
                 evaluation), or ask about the transductive setting only",
                front.assigned(Argument::HeldOut, "0.1")
            ),
            Remedy::NameDataset => {
                format!("name the dataset with {} or choose a memory", say(Argument::Dataset))
            }
            Remedy::DrawOrList => {
                format!("add {}, or list the values", front.assigned(Argument::Random, "N"))
            }
            Remedy::NameSeeds => format!("name them with {}", say(Argument::Seeds)),
            Remedy::FewerJobs => {
                format!("run fewer cells at once with {}", say(Argument::Jobs))
            }
            Remedy::AddEvents => {
                format!("check the id, or add its events with {}", say(Argument::Events))
            }
        }
    }
}

/// In the words of [`Plain`].
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Plain))
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Remedy {
        Remedy::Text(Cow::Owned(text.to_string()))
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Remedy {
        Remedy::Text(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_front_says_a_remedy_in_its_own_words() {
        let remedy = Remedy::NameColumn(Argument::Time);
        assert_eq!(remedy.to_string(), "name it with `time`");
        assert_eq!(remedy.render(&Keywords), "name it with time=");
        let remedy = Remedy::UseProtocol("tgb");
        assert_eq!(remedy.to_string(), "they belong to `protocol` tgb");
        assert_eq!(remedy.render(&Keywords), "they belong to protocol=\"tgb\"");
        assert!(Remedy::HoldOutNodes.render(&Keywords).contains("held_out=0.1 of an evaluation"));
        assert_eq!(Remedy::from("drop the row").render(&Keywords), "drop the row");
    }

    #[test]
    fn a_front_may_replace_a_whole_sentence() {
        struct Service;
        impl Front for Service {
            fn argument(&self, argument: Argument) -> String {
                Plain.argument(argument)
            }
            fn assigned(&self, argument: Argument, value: &str) -> String {
                Plain.assigned(argument, value)
            }
            fn remedy(&self, remedy: &Remedy) -> Option<String> {
                (*remedy == Remedy::NameRun).then(|| "GET /runs lists them".into())
            }
        }
        assert_eq!(Remedy::NameRun.render(&Service), "GET /runs lists them");
        assert_eq!(Remedy::NameSeeds.render(&Service), "name them with `seeds`");
    }

    #[test]
    fn arguments_have_names_of_their_own() {
        let mut names = Argument::ALL.map(Argument::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Argument::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
    }
}
