//! What can go wrong with data from outside. Wrong shapes in a program are bugs and panic with both
//! shapes.

/// A stored value that does not fit the parameters.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A name in the stored data is not a parameter here.
    #[error("no parameter is named {name:?}: the stored weights belong to another model")]
    UnknownParameter {
        /// The name that was asked for.
        name: String,
    },
    /// The stored value has another number of elements.
    #[error(
        "parameter {name:?} is {rows} x {cols}, but {len} values were given: the stored weights belong to another configuration, so give the settings they were trained with, or train anew"
    )]
    WrongLength {
        /// The parameter.
        name: String,
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// How many values came.
        len: usize,
    },
}
