//! Datasets as files: the catalogue of public ones, conversion between layouts, and TGB's layout.

mod catalogue;
mod convert;
mod tgb_files;

pub use catalogue::{Catalogue, Checksum, Entry, where_to_get};
pub use convert::{ConvertReport, convert};
pub use tgb_files::write_tgb;
