//! The mirror of a process whose connection is cut a thousand times at random moments, while two others write: every list
//! equals what is stored. Fails otherwise.
//!
//! Arguments: number of cuts (1,000), and the seed of the moments.

#[path = "../tests/mirror_cuts/mod.rs"]
mod mirror_cuts;

use std::time::Instant as Moment;

const CUTS: u64 = 1_000;
const SEED: u64 = 0x0d15_c0de_51de_0002;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (cuts, seed) = (numbers.next().unwrap_or(CUTS), numbers.next().unwrap_or(SEED));
    let begun = now();
    let written = mirror_cuts::compare_mirror(cuts, seed, true);
    let took = begun.elapsed().as_secs_f64();
    println!("    {cuts} disconnects, {written} records written: every list was right, after {took:.1} s");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Moment {
    Moment::now()
}
