//! Reads system figures of a running process.

#![allow(dead_code, reason = "not every attack asks for every figure")]

/// The most memory that the process has had resident, in bytes.
pub(crate) fn peak_resident_bytes(process: u32) -> u64 {
    status_kib(process, "VmHWM:") * 1024
}

/// The memory that the process has resident now, in bytes.
pub(crate) fn resident_bytes(process: u32) -> u64 {
    status_kib(process, "VmRSS:") * 1024
}

/// How many files and sockets the process has open.
pub(crate) fn open_files(process: u32) -> usize {
    let folder = format!("/proc/{process}/fd");
    std::fs::read_dir(folder).unwrap().count()
}

/// The processor time that the process has used, in clock ticks of 10 ms.
pub(crate) fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the command stands in brackets and may contain spaces.
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    ticks(11) + ticks(12)
}

/// A figure of `/proc/ID/status` by its name, in KiB; 0 once the process has ended.
pub(crate) fn status_kib(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    // A process that has ended, and that nobody has waited for, has no memory.
    let line = status.lines().find(|line| line.starts_with(name));
    line.map_or(0, |line| {
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    })
}

#[test]
fn memory_figures_of_this_process_can_be_read() {
    let own = std::process::id();
    assert!(peak_resident_bytes(own) >= resident_bytes(own) / 2);
    assert!(resident_bytes(own) > 0);
    assert!(open_files(own) >= 3);
    let before = cpu_ticks(own);
    assert!(cpu_ticks(own) >= before);
}
