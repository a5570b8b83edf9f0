//! Writes many job files into a directory, to see how long a check of them takes:
//! `cargo run -p cronhold-jobfile --example many_files -- DIR 10000`.
//!
//! The jobs are alike but not the same: params, templates, calendars, conditions on other jobs and actions that run
//! them, in folders of a hundred. None has a mistake.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// Jobs in one folder.
const FOLDER: usize = 100;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(root), Some(Ok(count))) = (args.next(), args.next().map(|count| count.parse::<usize>())) else {
        return Err(io::Error::other("expected a directory and a number of files"));
    };
    let root = Path::new(&root);
    fs::create_dir_all(root.join("calendars"))?;
    fs::write(root.join("calendars/holidays.cal"), "START 2026-01-01\nSTOP 2031-01-01\n2026-12-25  Christmas\n")?;
    for number in 0..count {
        let file = root.join(format!("{}.yaml", id(number)));
        if number % FOLDER == 0 {
            fs::create_dir_all(file.parent().unwrap_or(root))?;
        }
        fs::write(file, job(number, count))?;
    }
    Ok(())
}

fn id(number: usize) -> String {
    format!("folder-{:04}/job-{number:06}", number / FOLDER)
}

fn job(number: usize, count: usize) -> String {
    let mut text = format!(
        "description: Loads part {number} of the closing prices.\n\
         labels: [eod, part-{}]\n\
         params: {{region: {{default: us, choices: [us, eu]}}, date: {{}}}}\n\
         schedule:\n",
        number % 10
    );
    let (minute, hour) = (number % 60, number / 60 % 24);
    let zone = ["America/New_York", "Europe/Berlin", "UTC", "Asia/Tokyo"][number % 4];
    let _ = match number % 3 {
        0 => writeln!(text, "  - {{cron: \"{minute} {hour} * * Mon-Fri\", timezone: {zone}, args: {{region: us}}}}"),
        1 => {
            writeln!(text, "  - {{daily: [\"{hour:02}:{minute:02}\"], calendar: Mon-Fri - holidays, timezone: {zone}}}")
        }
        _ => writeln!(text, "  - {{hour: \"*/2\", minute: {minute}, timezone: {zone}, jitter: 30s}}"),
    };
    text.push_str("program: load --region {{ region }} --date {{ date }}\n");
    // Conditions refer to earlier files, so there is no cycle, and the chain through all files is as long as possible.
    if number > 0 {
        let _ = writeln!(
            text,
            "conditions:\n  - {{after: {{job: {}, args: {{date: \"{{{{ date }}}}\"}}}}}}",
            id(number - 1)
        );
        text.push_str("  - {max_running: 1}\n");
    }
    let next = id((number + 1) % count.max(1));
    let _ = writeln!(text, "retry: {{attempts: 3, backoff: 10s}}\ntimeout: 90m\nenv: {{PART: \"{number}\"}}");
    let _ = writeln!(
        text,
        "on:\n  failure: [{{run: {{job: {next}}}}}, {{publish: {{channel: \"/alerts/{{{{ region }}}}\"}}}}]"
    );
    text
}
