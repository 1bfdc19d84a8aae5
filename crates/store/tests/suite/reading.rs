use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trimtab_store::{Error, FRAME, LineRange, OutputForm};

use super::{World, noise, session, text};

pub(crate) fn lines_are_split_at_newlines(world: &World) {
    let s = session("s");
    for text in [
        "",
        "\n",
        "one",
        "one\n",
        "one\ntwo",
        "\n\n\n",
        "a\r\nb\r\n",
        "ä\n\u{1f600}",
    ] {
        let found = world.put(&s, "c1", text);
        let lines = world
            .store
            .lines(&s, found.id(), LineRange::new(0, 100))
            .unwrap();
        let got: Vec<_> = lines
            .lines
            .iter()
            .map(|line| line.text().into_owned())
            .collect();
        let expected: Vec<_> = text.split('\n').map(|l| l.trim_end_matches('\r')).collect();
        assert_eq!(got, expected, "{text:?}");
        assert_eq!(lines.line_count, expected.len() as u64);
        assert_eq!(lines.next, None);
    }
}

pub(crate) fn offset_past_the_end_is_an_error(world: &World) {
    let s = session("s");
    let found = world.put(&s, "c1", "a\nb\nc");
    let last = world
        .store
        .lines(&s, found.id(), LineRange::new(2, 9))
        .unwrap();
    assert_eq!(last.lines.len(), 1);
    for offset in [3, 4, u64::MAX] {
        let error = world
            .store
            .lines(&s, found.id(), LineRange::new(offset, 1))
            .unwrap_err();
        assert!(
            matches!(error, Error::PastEnd { line_count: 3, .. }),
            "{error}"
        );
    }
    let none = world
        .store
        .lines(&s, found.id(), LineRange::new(1, 0))
        .unwrap();
    assert_eq!((none.lines.len(), none.next), (0, Some(1)));
}

pub(crate) fn long_lines_are_clipped(world: &World) {
    let s = session("s");
    let long = "x".repeat(5 * FRAME + 17);
    let text = format!("first\n{long}\nlast");
    let found = world.put(&s, "c1", &text);
    let mut range = LineRange::new(0, 10);
    range.max_line_bytes = 100;
    let lines = world.store.lines(&s, found.id(), range).unwrap().lines;
    assert_eq!(lines.len(), 3);
    assert!(lines[1].is_clipped());
    assert_eq!((lines[1].start, lines[1].byte_size), (6, long.len() as u64));
    assert_eq!(lines[1].text(), "x".repeat(100));
    assert_eq!(lines[2].text(), "last");
    let stored = world.store.open(&s, found.id(), OutputForm::Text).unwrap();
    let rest = stored
        .read_at(lines[1].start + 5 * FRAME as u64, 100)
        .unwrap();
    assert_eq!(rest, [&b"x".repeat(17)[..], b"\nlast"].concat());
    range.max_line_bytes = 0;
    let lines = world.store.lines(&s, found.id(), range).unwrap().lines;
    let sizes: Vec<_> = lines.iter().map(|line| line.byte_size).collect();
    assert_eq!(sizes, [5, long.len() as u64, 4]);
}

pub(crate) fn reading_stops_at_the_size_limit(world: &World) {
    let s = session("s");
    let found = world.put(&s, "c1", text(10_000));
    let mut range = LineRange::new(100, 10_000);
    range.max_bytes = 1_000;
    let lines = world.store.lines(&s, found.id(), range).unwrap();
    let bytes: usize = lines.lines.iter().map(|line| line.bytes.len() + 1).sum();
    assert!((1_000..1_100).contains(&bytes), "{bytes}");
    assert_eq!(lines.next, Some(100 + lines.lines.len() as u64));
}

pub(crate) fn byte_ranges_are_read(world: &World) {
    let s = session("s");
    let bytes = noise(4 * FRAME + 99);
    let found = world.put(&s, "c1", &bytes);
    let stored = world.store.open(&s, found.id(), OutputForm::Whole).unwrap();
    let size = bytes.len();
    for (start, len) in [
        (0, 10),
        (FRAME - 1, 2),
        (FRAME, FRAME),
        (FRAME + 5, 2 * FRAME),
        (size - 1, 10),
        (size, 10),
        (size + 10 * FRAME, 1),
        (3, size),
    ] {
        let expected = &bytes[start.min(size)..(start + len).min(size)];
        assert_eq!(
            stored.read_at(start as u64, len).unwrap(),
            expected,
            "{start} {len}"
        );
    }
}

pub(crate) fn random_line_ranges_are_read(world: &World) {
    let s = session("s");
    // Few long lines or many short ones, around the size of a frame.
    let line = prop_oneof![
        4 => 0..200_usize,
        1 => FRAME - 3..FRAME + 3,
        1 => 2 * FRAME..3 * FRAME,
    ];
    let lines = prop::collection::vec(line, 0..30);
    let case = (lines, any::<prop::sample::Index>(), 0..40_u64, 1..300_usize);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(60));
    let result = runner.run(&case, |(lens, offset, limit, clip)| {
        let lines: Vec<Vec<u8>> = lens.iter().map(|len| vec![b'a'; *len]).collect();
        let bytes = lines.join(&b'\n');
        let expected: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
        let offset = offset.index(expected.len());
        let found = world.put(&s, "c1", &bytes);
        let mut range = LineRange::new(offset as u64, limit);
        range.max_line_bytes = clip;
        range.max_bytes = usize::MAX;
        let got = world.store.lines(&s, found.id(), range).unwrap();
        let last = (offset + usize::try_from(limit).unwrap()).min(expected.len());
        prop_assert_eq!(got.lines.len(), last - offset);
        let mut start: u64 = expected[..offset]
            .iter()
            .map(|line| line.len() as u64 + 1)
            .sum();
        for (line, expected) in got.lines.iter().zip(&expected[offset..]) {
            prop_assert_eq!(&line.bytes[..], &expected[..expected.len().min(clip)]);
            prop_assert_eq!(line.byte_size, expected.len() as u64);
            prop_assert_eq!(line.start, start);
            start += expected.len() as u64 + 1;
        }
        Ok(())
    });
    result.unwrap();
}
