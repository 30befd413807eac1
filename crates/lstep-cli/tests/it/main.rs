//! Journeys through the real command.

mod compare;
mod compat;
mod counting;
mod data;
mod data_in;
mod doctor;
mod export;
mod files;
mod host;
mod journey;
mod kills;
mod life;
mod mutations;
mod own_scores;
mod plan;
mod real_data;
mod recommend;
mod report;
mod scoring;
mod tgb;
mod training;
mod workers;
