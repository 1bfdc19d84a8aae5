//! Peak memory of the command on a large output, as the system reports it.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use crate::run::Home;

const LARGE: usize = 64 * 1024 * 1024;
const MOST: u64 = 64 * 1024 * 1024;

/// Peak memory of a process that is still there; none where the system does not tell.
fn peak(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1_024)
}

/// Stores lines of all kinds, streamed in; gives the ref, and the peak on the way.
fn put_large(home: &Home) -> (String, Option<u64>) {
    let mut command = home.command();
    let command = command.args(["output", "put", "-qs", "s", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut written = 0;
    let mut most = None;
    let mut number = 0_u64;
    while written < LARGE {
        let mut piece = Vec::with_capacity(1 << 20);
        while piece.len() < 1 << 20 {
            number += 1;
            let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            writeln!(
                piece,
                "{number:>9} {noise:016x} every line is different from the others"
            )
            .unwrap();
        }
        stdin.write_all(&piece).unwrap();
        written += piece.len();
        most = most.max(peak(&child));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    (
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned(),
        most,
    )
}

/// Runs the command and looks at its memory whenever it waits for us to read on. It prints more
/// than a pipe holds, so it is looked at after the work is done and before it ends.
fn peak_of(home: &Home, args: &[&str]) -> (u64, Option<u64>) {
    let mut command = home.command();
    let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut buffer = vec![0; 16 * 1024];
    let (mut bytes, mut most) = (0, None);
    loop {
        let read = stdout.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        bytes += read as u64;
        most = most.max(peak(&child));
    }
    assert!(child.wait().unwrap().success(), "{args:?}");
    (bytes, most)
}

#[test]
fn large_output_is_streamed() {
    if !std::path::Path::new("/proc/self/status").exists() {
        println!("skipped: the system does not tell the peak of a process");
        return;
    }
    let home = Home::new();
    let (id, put) = put_large(&home);
    let offset = "700000";
    let mut seen = vec![("put", 1 << 20, put)];
    for (name, args) in [
        (
            "read",
            vec![
                "read", "-s", "s", &id, "--offset", offset, "--limit", "5000",
            ],
        ),
        ("grep", vec!["grep", "-s", "s", &id, "ab", "--max", "3000"]),
        (
            "grep to the end",
            vec![
                "grep",
                "-s",
                "s",
                &id,
                "77 [0-9a-f]*5 ",
                "-E",
                "--max",
                "4000",
            ],
        ),
        ("raw", vec!["read", "-s", "s", &id, "--raw"]),
    ] {
        let args: Vec<&str> = ["output"].into_iter().chain(args).collect();
        let (bytes, most) = peak_of(&home, &args);
        seen.push((name, bytes, most));
    }
    for (name, bytes, most) in seen {
        let most = most.unwrap_or_else(|| panic!("{name} printed nothing"));
        println!("{name}: {bytes} bytes printed, peak {} KiB", most / 1_024);
        assert!(
            bytes > 100_000,
            "{name}: too little to be looked at: {bytes}"
        );
        assert!(most < MOST, "{name}: {most}");
    }
}
