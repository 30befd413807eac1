//! Journeys through the real command.

mod command;
mod compare;
mod data;
mod export;
mod host;
mod journey;
mod real_data;
mod report;
mod scoring;
mod small;
mod tgb;
mod training;
