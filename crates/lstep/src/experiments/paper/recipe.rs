//! The paper's experiments, one after the other. A label is the one of the paper's table, so that
//! its figures are found.

use crate::error::{Error, Result};
use crate::experiments::paper::published;
use crate::experiments::{ModelSpec, Published};
use crate::protocol::{EvalScope, Part, Setting, Strategy};

/// An experiment of the paper.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// LaTeX labels of its tables.
    pub tables: &'static [&'static str],
    /// The datasets.
    pub datasets: &'static [&'static str],
    /// Label and specification of every model.
    pub models: &'static [(&'static str, &'static str)],
    /// Parts asked about.
    pub parts: &'static [Part],
    /// Which of their events.
    pub settings: &'static [Setting],
    /// Against which negatives.
    pub negatives: &'static [Strategy],
    /// Whether it is about time, so that cells must not disturb each other.
    pub timed: bool,
    /// What is odd about the published figures, beside the leak.
    pub remark: &'static str,
}

/// What has to stand beside every published number of L-STEP.
pub const LEAK_NOTE: &str = "Published L-STEP figures come from released code that leaks labels: it filters the positions of a step's \
    true endpoints only, so the scorer can tell sampled negatives by their unfiltered positions. They are no target for the honest \
    runs measured here.";

/// The 13 datasets of the Dynamic Graph Benchmark, in the order of the paper's tables.
pub(super) const CLASSIC: [&str; 13] = [
    "wikipedia",
    "reddit",
    "mooc",
    "lastfm",
    "enron",
    "socialevo",
    "uci",
    "flights",
    "canparl",
    "uslegis",
    "untrade",
    "unvote",
    "contacts",
];

/// The columns of the paper's main tables, and two models that only count.
const SYSTEMS: [(&str, &str); 12] = [
    ("EdgeBank", "edgebank"),
    ("Heuristics", "heuristics"),
    ("JODIE", "jodie"),
    ("DyRep", "dyrep"),
    ("TGAT", "tgat"),
    ("TGN", "tgn"),
    ("CAWN", "cawn"),
    ("TCL", "tcl"),
    ("GraphMixer", "graphmixer"),
    ("DyGFormer", "dygformer"),
    ("FreeDyG", "freedyg"),
    ("L-STEP", "lstep"),
];

const BOTH: &[Setting] = &[Setting::Transductive, Setting::Inductive];
const TRANSDUCTIVE: &[Setting] = &[Setting::Transductive];
const INDUCTIVE: &[Setting] = &[Setting::Inductive];
const RANDOM: &[Strategy] = &[Strategy::Random];
const HISTORICAL: &[Strategy] = &[Strategy::Historical];
const UNSEEN: &[Strategy] = &[Strategy::Inductive];

/// L-STEP's own experiments: both settings, random negatives.
const OWN: Recipe = Recipe {
    name: "",
    about: "",
    tables: &[],
    datasets: &CLASSIC,
    models: &[],
    parts: &[Part::Test],
    settings: BOTH,
    negatives: RANDOM,
    timed: false,
    remark: "",
};

/// A main table: all systems on the 13 datasets.
const fn systems(
    name: &'static str,
    about: &'static str,
    tables: &'static [&'static str],
    settings: &'static [Setting],
    negatives: &'static [Strategy],
) -> Recipe {
    Recipe { name, about, tables, settings, negatives, models: &SYSTEMS, ..OWN }
}

/// All recipes.
pub const RECIPES: &[Recipe] = &[
    systems(
        "main",
        "all six main tables: both settings, three kinds of negatives",
        &[
            "tab:transductive_random",
            "tab:transductive_hist",
            "tab:transductive_ind",
            "tab:inductive_random",
            "tab:inductive_hist",
            "tab:inductive_ind",
        ],
        BOTH,
        &[Strategy::Random, Strategy::Historical, Strategy::Inductive],
    ),
    systems(
        "transductive-random",
        "main table, random negatives",
        &["tab:transductive_random"],
        TRANSDUCTIVE,
        RANDOM,
    ),
    systems(
        "transductive-historical",
        "main table, pairs of the past",
        &["tab:transductive_hist"],
        TRANSDUCTIVE,
        HISTORICAL,
    ),
    systems(
        "transductive-inductive",
        "main table, pairs unseen in training",
        &["tab:transductive_ind"],
        TRANSDUCTIVE,
        UNSEEN,
    ),
    systems(
        "inductive-random",
        "new nodes, random negatives",
        &["tab:inductive_random"],
        INDUCTIVE,
        RANDOM,
    ),
    systems(
        "inductive-historical",
        "new nodes, pairs of the past",
        &["tab:inductive_hist"],
        INDUCTIVE,
        HISTORICAL,
    ),
    systems(
        "inductive-inductive",
        "new nodes, pairs unseen in training",
        &["tab:inductive_ind"],
        INDUCTIVE,
        UNSEEN,
    ),
    Recipe {
        name: "tgb",
        about: "TGB's leaderboard: MRR on tgbl-review and tgbl-coin",
        tables: &["tab:tgb"],
        datasets: &["tgbl-review", "tgbl-coin"],
        models: &[
            ("EdgeBank (unlimited)", "edgebank:memory=unlimited"),
            ("EdgeBank (tw)", "edgebank:memory=window-tgb"),
            ("DyRep", "dyrep"),
            ("TGAT", "tgat"),
            ("TGN", "tgn"),
            ("CAWN", "cawn"),
            ("TCL", "tcl"),
            ("NAT", "nat"),
            ("TNCN", "tncn"),
            ("GraphMixer", "graphmixer"),
            ("DyGFormer", "dygformer"),
            ("L-STEP", "lstep"),
        ],
        parts: &[Part::Validation, Part::Test],
        settings: TRANSDUCTIVE,
        negatives: &[Strategy::Tgb],
        remark: "The leaderboard mixes protocols: some entries see the events of their own batch, here nothing of the own step is seen.",
        ..OWN
    },
    Recipe {
        name: "attention",
        about: "MLP against attention in L-STEP",
        tables: &["tab:transformer"],
        models: &[("L-STEP", "lstep"), ("L-STEP + Attention", "lstep:aggregation=attention")],
        ..OWN
    },
    Recipe {
        name: "runtime",
        about: "time and epochs until training stops, L-STEP and DyGFormer",
        tables: &["tab:runtime_comparison"],
        datasets: &["uslegis", "untrade"],
        models: &[("L-STEP", "lstep"), ("DyGFormer", "dygformer")],
        settings: TRANSDUCTIVE,
        timed: true,
        remark: "Published times are those of PyTorch on a Tesla V100; measured ones are of this machine's processor, one cell at a time.",
        ..OWN
    },
    Recipe {
        name: "only-lpe",
        about: "L-STEP with positions alone",
        tables: &["tab:ablation_study_1"],
        models: &[("L-STEP", "lstep"), ("Only LPE", "lstep:variant=position-only")],
        ..OWN
    },
    Recipe {
        name: "without-lpe",
        about: "L-STEP without positions",
        tables: &["tab:ablation_study_no_pe"],
        models: &[("L-STEP", "lstep"), ("W/o LPE", "lstep:variant=no-position")],
        ..OWN
    },
    Recipe {
        name: "t-gap",
        about: "sweep over t_gap, the window of the node encoding",
        tables: &["tab:param_analysis_transductive", "tab:param_analysis_inductive"],
        datasets: &["enron", "unvote"],
        models: &[
            ("t_gap = 10", "lstep:gap=10"),
            ("t_gap = 50", "lstep:gap=50"),
            ("t_gap = 1000", "lstep:gap=1000"),
            ("t_gap = 2000", "lstep:gap=2000"),
        ],
        remark: "The paper's inductive ROC-AUC of UN Vote at t_gap = 50 repeats the transductive one.",
        ..OWN
    },
    Recipe {
        name: "k",
        about: "sweep over K, the number of recent events",
        tables: &[
            "tab:param_analysis_neighborhood_transductive",
            "tab:param_analysis_neighborhood_inductive",
        ],
        datasets: &["enron", "unvote"],
        models: &[
            ("K = 5", "lstep:recent=5"),
            ("K = 20", "lstep:recent=20"),
            ("K = 50", "lstep:recent=50"),
            ("K = 100", "lstep:recent=100"),
        ],
        remark: "In the paper's inductive table, Enron at K = 20 has UCI's figures, and UN Vote's ROC-AUC at K = 20 is UN Trade's.",
        ..OWN
    },
    Recipe {
        name: "l",
        about: "sweep over L, the number of snapshots",
        tables: &["tab:param_analysis_L"],
        datasets: &["canparl"],
        models: &[
            ("L = 20", "lstep:snapshots=20"),
            ("L = 50", "lstep:snapshots=50"),
            ("L = 100", "lstep:snapshots=100"),
            ("L = 200", "lstep:snapshots=200"),
        ],
        ..OWN
    },
    Recipe {
        name: "alpha-neg",
        about: "sweep over alpha_neg, the weight of negatives in the positional loss",
        tables: &["tab:param_analysis_neg"],
        datasets: &["canparl"],
        models: &[
            ("alpha_neg = 0.05", "lstep:alpha_neg=0.05"),
            ("alpha_neg = 0.1", "lstep:alpha_neg=0.1"),
            ("alpha_neg = 0.3", "lstep:alpha_neg=0.3"),
            ("alpha_neg = 0.5", "lstep:alpha_neg=0.5"),
            ("alpha_neg = 0.95", "lstep:alpha_neg=0.95"),
        ],
        ..OWN
    },
    Recipe {
        name: "alpha-pe",
        about: "sweep over alpha_pe, the weight of the positional loss",
        tables: &["tab:param_analysis_pe_weight"],
        datasets: &["enron"],
        models: &[
            ("alpha_pe = 0.05", "lstep:alpha_pe=0.05"),
            ("alpha_pe = 0.3", "lstep:alpha_pe=0.3"),
            ("alpha_pe = 0.5", "lstep:alpha_pe=0.5"),
            ("alpha_pe = 0.95", "lstep:alpha_pe=0.95"),
        ],
        remark: "The paper's figures at alpha_pe = 0.3 are those of its main table, whose text says 0.5.",
        ..OWN
    },
    Recipe {
        name: "start",
        about: "positions that start with Laplacian eigenvectors or with random walks",
        tables: &["tab:rwpe"],
        datasets: &["enron"],
        models: &[
            ("Laplacian PE", "lstep:start=laplacian"),
            ("Random Walk PE", "lstep:start=random-walk"),
        ],
        ..OWN
    },
];

/// A recipe by name.
pub fn recipe(name: &str) -> Result<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name).ok_or_else(|| {
        let known: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        Error::unknown("recipe", name, known)
    })
}

impl Recipe {
    /// Its models under the paper's labels.
    pub fn models(&self) -> Result<Vec<ModelSpec>> {
        let model = |(label, spec): &(&str, &str)| Ok(spec.parse::<ModelSpec>()?.labelled(label));
        self.models.iter().map(model).collect()
    }

    /// What it asks.
    pub fn asked(&self) -> EvalScope {
        EvalScope {
            parts: self.parts.to_vec(),
            settings: self.settings.to_vec(),
            strategies: self.negatives.to_vec(),
        }
    }

    /// The figures of its tables for its models.
    pub fn published(&self) -> Vec<Published> {
        let of_its = |figure: &&Published| {
            self.tables.contains(&figure.table.as_str())
                && self.models.iter().any(|model| model.0 == figure.model)
        };
        published().iter().filter(of_its).cloned().collect()
    }
}
