//! Peak memory while a file of conversations is inspected, as the system reports it.
//!
//! This test has its own binary, because the peak is one figure for the whole process.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail and report as tests do"
)]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};

use trimtab_cli::verbs::inspect::report::InspectReport;
use trimtab_wire::transcript::TranscriptReader;

/// A field of `/proc/self/status`, in bytes; none where there is no such file.
fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1_024)
}

/// Writes conversations of growing size; gives the size of the largest.
fn write(file: &mut impl Write) -> u64 {
    let mut largest = 0;
    for rounds in [200, 2_000, 500, 4_000, 3_000] {
        let mut line =
            String::from("{\"id\":\"x\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}");
        for round in 0..rounds {
            let output = format!("src/file_{round}.rs:12: let x = \\\"{round}\\\";\\n").repeat(200);
            let _ = write!(
                line,
                ",{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"c{round}\",\"type\":\"function\",\"function\":{{\"name\":\"grep\",\"arguments\":\"{{}}\"}}}}]}},{{\"role\":\"tool\",\"tool_call_id\":\"c{round}\",\"content\":\"{output}\"}}"
            );
        }
        line.push_str("]}\n");
        largest = largest.max(line.len() as u64);
        file.write_all(line.as_bytes()).unwrap();
    }
    largest
}

#[test]
fn memory_stays_below_three_times_the_largest_conversation() {
    if std::env::var_os("TRIMTAB_MEMORY_CHILD").is_some() {
        return measure();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let largest = write(&mut file);
    file.flush().unwrap();
    // A process of its own: writing the file has left its mark on the peak of this one.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("--nocapture")
        .env("TRIMTAB_MEMORY_CHILD", &path)
        .output()
        .unwrap();
    let stdout = String::from_utf8(child.stdout).unwrap();
    let peak = stdout.lines().find_map(|line| line.split_once("peak: "));
    let Some((_, peak)) = peak else {
        println!("skipped: the system does not tell the peak");
        return;
    };
    let peak: u64 = peak.trim().parse().unwrap();
    println!(
        "largest {largest} bytes, peak {peak} bytes: {:.2} x",
        peak as f64 / largest as f64
    );
    assert!(
        largest > 30_000_000 && peak < largest * 3,
        "{peak} of {largest}"
    );
}

fn measure() {
    let path = std::env::var_os("TRIMTAB_MEMORY_CHILD").unwrap();
    let Some(before) = status("VmRSS:") else {
        return;
    };
    let reader = TranscriptReader::new(BufReader::new(File::open(path).unwrap()));
    let mut rounds = 0;
    for conversation in reader {
        let conversation = conversation.unwrap();
        rounds += InspectReport::new("x", &conversation, None).counts.rounds;
    }
    assert_eq!(rounds, 9_700);
    if let Some(peak) = status("VmHWM:") {
        println!("peak: {}", peak.saturating_sub(before));
    }
}
