//! Tests of the store on real files.

mod conformance;
mod deaths;
mod faults;
mod files;
mod places;
mod samples;
mod tasks;
