//! A stream made from a seed.
