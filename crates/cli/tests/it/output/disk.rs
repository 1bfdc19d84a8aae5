//! Full, read-only and corrupted disks.

use std::process::Command;

use crate::run::{Home, finish};

/// Runs `script` where `$DISK` is a small disk of its own; none if the system allows no mount.
fn on_a_small_disk(script: &str) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=4m,mode=700 none \"$DISK\" 2>/dev/null || exit 77";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &format!("{mount}; {script}")])
        .env("DISK", folder.path())
        .env("TRIMTAB", env!("CARGO_BIN_EXE_trimtab"))
        .env("TRIMTAB_STORE", folder.path().join("store"))
        .env_remove("TRIMTAB_SESSION");
    let is_there = Command::new("unshare").arg("--version").output().is_ok();
    let done = is_there.then(|| finish(&mut command, b""));
    let Some(done) = done.filter(|done| done.code == 0) else {
        println!("skipped: no disk can be mounted here");
        return None;
    };
    let store = folder.path().join("store").display().to_string();
    Some((done.stdout, done.stderr.replace(&store, "STORE")))
}

#[test]
fn full_disk_loses_nothing_and_is_reported() {
    let script = "
        ref=$(echo kept | \"$TRIMTAB\" output put -qs s -) || exit 1
        head -c 8000000 /dev/urandom | \"$TRIMTAB\" output put -qs s -; echo \"code $?\"
        \"$TRIMTAB\" output read -s s $ref; echo \"code $?\"
        \"$TRIMTAB\" output list -qs s --json | wc -l";
    let Some((stdout, stderr)) = on_a_small_disk(script) else {
        return;
    };
    assert_eq!(stdout, "code 1\n    1  kept\ncode 0\n1\n");
    assert_eq!(
        stderr,
        "error: store at STORE: no room left in the store\n\
         hint: free disk space, or remove old sessions with `trimtab output gc`\n"
    );
}

#[test]
fn read_only_disk_can_be_read() {
    let script = "
        ref=$(echo kept | \"$TRIMTAB\" output put -qs s -) || exit 1
        mount -o remount,ro \"$DISK\" || exit 77
        \"$TRIMTAB\" output read -s s $ref; echo \"code $?\"
        \"$TRIMTAB\" output grep -s s $ref kept; echo \"code $?\"
        echo new | \"$TRIMTAB\" output put -qs s -; echo \"code $?\"";
    let Some((stdout, stderr)) = on_a_small_disk(script) else {
        return;
    };
    assert_eq!(stdout, "    1  kept\ncode 0\n1:kept\ncode 0\ncode 1\n");
    assert_eq!(
        stderr,
        "error: store at STORE: is read-only\n\
         hint: stored outputs are readable; to write, use another --store\n"
    );
}

#[test]
fn full_standard_output_is_reported() {
    let home = Home::new();
    let id = home.put(b"one");
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        println!("skipped: there is no /dev/full here");
        return;
    };
    let mut command = home.command();
    let output = command
        .args(["output", "read", "-s", "s", &id])
        .stdout(full)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("No space left on device"), "{told}");
}

#[test]
fn damaged_output_is_reported_and_not_printed() {
    let home = Home::new();
    // Large and hard to compress: it has a file of its own.
    let line = |n: u64| format!("{:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let content: String = (0..200_000).map(line).collect();
    let id = home.put(content.as_bytes());
    let blobs = std::fs::read_dir(home.store().join("blobs")).unwrap();
    let blob = blobs.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut bytes = std::fs::read(&blob).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&blob, bytes).unwrap();
    let done = home.run(&["output", "read", "-s", "s", &id, "--raw"]);
    assert_eq!(done.code, 1);
    assert!(content.starts_with(&done.stdout));
    let told = format!("error: output '{id}' is damaged");
    assert!(done.stderr.starts_with(&told), "{}", done.stderr);
}

#[test]
fn doctor_reports_a_damaged_list_of_outputs() {
    let home = Home::new();
    let id = home.put(b"one");
    let database = home.store().join("trimtab.db");
    let mut bytes = std::fs::read(&database).unwrap();
    // The media type is a column of the row of the ref, some bytes after its id.
    let of_ref = memchr::memmem::find_iter(&bytes, id.as_bytes()).collect::<Vec<_>>();
    let after = |at: usize| memchr::memmem::find(&bytes[at..at + 100], b"text/").map(|to| at + to);
    let media_type = of_ref.into_iter().find_map(after).unwrap();
    bytes[media_type] = b'T';
    std::fs::write(&database, bytes).unwrap();
    let told = home.run(&["doctor"]);
    let text = format!("{}{}", told.stdout, told.stderr);
    assert!(text.contains("1 of 1 are damaged, for example"), "{text}");
}
