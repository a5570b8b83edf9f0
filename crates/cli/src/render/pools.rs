//! A table of pools.

use std::io::{self, Write};

use cronhold_api::PoolSummary;

use super::TextTable;

/// Jobs of a pool that are printed.
const JOBS_SHOWN: usize = 5;

/// Prints the table.
pub(crate) fn table(pools: &[PoolSummary], colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["POOL", "SIZE", "ACTIVE", "WAITING", "JOBS", "NOTES"]);
    for pool in pools {
        let size = pool.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        table.row([
            pool.name.clone().into(),
            size.into(),
            pool.active.to_string().into(),
            pool.waiting.to_string().into(),
            jobs(pool).into(),
            note(pool).into(),
        ]);
    }
    table.write(colours, out)
}

fn jobs(pool: &PoolSummary) -> String {
    let mut names: Vec<String> = pool.jobs.iter().take(JOBS_SHOWN).cloned().collect();
    if pool.jobs.len() > JOBS_SHOWN {
        names.push(format!("{} more", pool.jobs.len() - JOBS_SHOWN));
    }
    names.join(" ")
}

fn note(pool: &PoolSummary) -> String {
    if !pool.sizes.is_empty() {
        let sizes: Vec<String> = pool.sizes.iter().map(u32::to_string).collect();
        return format!("the jobs have different counts: {}", sizes.join(", "));
    }
    if pool.size.is_none() { "no job names it any more".to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_shown_in_a_table() {
        let pool = |name: &str, sizes: &[u32], active, waiting, jobs: usize| PoolSummary {
            name: name.to_owned(),
            size: sizes.first().copied(),
            sizes: if sizes.len() > 1 { sizes.to_vec() } else { Vec::new() },
            active,
            waiting,
            jobs: (0..jobs).map(|number| format!("load/{number}")).collect(),
            runs: Vec::new(),
        };
        let pools = [pool("database", &[8], 8, 120, 7), pool("gpu", &[1, 2], 0, 0, 2), pool("old", &[], 1, 0, 0)];
        let mut out = Vec::new();
        table(&pools, false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
