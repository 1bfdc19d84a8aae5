//! A scan that resumes after a known prefix equals a full scan.

use proptest::prelude::*;
use trimtab_testkit::cases;
use trimtab_wire::scan::{BodyScan, ScanMemo};

use crate::common::body;

/// Scans a body anew and from behind so many entries: both must see the same.
fn check(body: &str, memo: &ScanMemo, entries: usize, scan: &BodyScan<'_>) {
    let fresh = BodyScan::new(body.as_bytes(), scan.dialect()).unwrap();
    let resumed = BodyScan::resume(body.as_bytes(), memo.clone(), entries).unwrap();
    assert_eq!(resumed.request(), fresh.request());
    assert_eq!(resumed.len(), fresh.len());
    assert_eq!(resumed.first_in_list(), fresh.first_in_list());
    for at in 0..fresh.len() {
        assert_eq!(resumed.role(at), fresh.role(at));
        assert_eq!(resumed.parts(at), fresh.parts(at));
        assert_eq!(resumed.message(at), fresh.message(at));
    }
    let (again, first) = (resumed.into_memo(), fresh.into_memo());
    assert_eq!(format!("{again:?}"), format!("{first:?}"));
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn resumed_scan_equals_a_full_scan((dialect, body) in body(8)) {
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        let Some(memo) = scan.clone().into_memo() else { return Ok(()) };
        let list = scan.request().list;
        for entries in 1..=memo.entries() {
            let Some(boundary) = memo.boundary(entries) else { continue };
            check(&body, &memo, entries, &scan);
            // The same without what follows there.
            let shorter = format!("{}{}", &body[..boundary.offset], &body[list.end as usize - 1..]);
            check(&shorter, &memo, entries, &scan);
            // The same with the entries that follow once more behind them.
            let inside = &body[boundary.offset..list.end as usize - 1];
            let (before, after) = body.split_at(list.end as usize - 1);
            check(&format!("{before}{inside}{after}"), &memo, entries, &scan);
        }
    }
}
