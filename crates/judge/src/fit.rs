//! Fits the coefficients of the estimator and reports their error. Runs only on request:
//!
//! ```text
//! TRIMTAB_FIT=<folder> cargo test --release -p trimtab-judge fit -- --ignored --nocapture
//! ```
//!
//! The folder contains UTF-8 text files, one kind of text each. Files are split into chunks of 4
//! KB; every second chunk is used for fitting, the others for evaluation. The fit minimises the
//! squared relative error, with non-negative coefficients (so that no estimate is negative, and
//! more text never has a lower estimate).

use trimtab::model::estimate::{FEATURES, coefficients, count_features};

const CHUNK: usize = 4096;

struct Sample {
    file: String,
    bytes: f64,
    counts: Vec<f64>,
    tokens: f64,
}

#[test]
#[ignore = "needs a folder of texts in TRIMTAB_FIT"]
fn fit() {
    let folder = std::env::var("TRIMTAB_FIT").expect("TRIMTAB_FIT names a folder");
    let mut samples = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let name = path
            .file_stem()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("UTF-8 text");
        samples.extend(chunks(&name, &text));
    }
    samples.sort_by(|a, b| a.file.cmp(&b.file));
    let fitted = least_squares(&samples);
    println!("fitted, in 4096ths of a token:");
    for (index, value) in fitted.iter().enumerate() {
        let seen: f64 = samples.iter().map(|s| s.counts[index]).sum();
        println!(
            "    {:>6}, // {index} seen {seen}",
            (value * 4096.0).round()
        );
    }
    report("fitted", &samples, |s| dot(&fitted, &s.counts));
    let current = coefficients();
    report("in the code", &samples, |s| dot(&current, &s.counts));
    report("bytes/4", &samples, |s| s.bytes / 4.0);
}

fn chunks(name: &str, text: &str) -> Vec<Sample> {
    let counter = tiktoken_rs::o200k_base_singleton();
    let mut rest = text;
    let mut samples = Vec::new();
    while rest.len() >= CHUNK {
        let mut at = CHUNK;
        while !rest.is_char_boundary(at) {
            at -= 1;
        }
        let (chunk, behind) = rest.split_at(at);
        rest = behind;
        samples.push(Sample {
            file: name.to_owned(),
            bytes: chunk.len() as f64,
            counts: count_features(chunk)
                .iter()
                .map(|&n| f64::from(n))
                .collect(),
            tokens: counter.encode_ordinary(chunk).len() as f64,
        });
    }
    samples
}

/// Each kind of text counts for at most a hundred chunks, agent sessions for three times as many.
fn weight(samples: &[Sample], sample: &Sample) -> f64 {
    let peers = samples.iter().filter(|s| s.file == sample.file).count() as f64;
    let share: f64 = if sample.file.starts_with("corpus") {
        300.0
    } else {
        100.0
    };
    share.min(peers) / peers
}

/// The bounds of a coefficient. They follow from the splitting rules of the vocabularies, and make
/// the fit valid for other texts.
fn bounds(feature: usize) -> (f64, f64) {
    match feature {
        // Words: at least one token, except for the share of a glued prefix.
        0 => (1.0, 1.1),
        1 => (1.0, 1.3),
        2 => (1.0, 1.6),
        3 => (1.0, 2.2),
        4 => (1.0, 2.8),
        5 => (1.0, 3.5),
        6 => (1.0, 4.5),
        7..=8 => (0.7, 1.6),
        9..=13 => (0.7, 4.5),
        // Three digits, and separate punctuation, are one token each.
        18 => (1.0, 1.0),
        19 => (0.9, 1.2),
        24 | 30 => (0.9, 1.1),
        26 => (0.9, 1.0),
        27 => (0.8, 1.2),
        28 => (0.005, 0.1),
        31 => (0.2, 1.0),
        // Too rare to fit; a byte pair is at least half a token.
        40 => (0.5, 2.0),
        58 => (0.3, 2.0),
        63 => (1.0, 3.0),
        _ => (0.0, 3.0),
    }
}

/// Coordinate descent on the normal equations, within the bounds.
fn least_squares(samples: &[Sample]) -> Vec<f64> {
    let mut normal = vec![vec![0.0; FEATURES]; FEATURES];
    let mut target = vec![0.0; FEATURES];
    for sample in samples.iter().step_by(2) {
        let weight = weight(samples, sample);
        let row: Vec<f64> = sample.counts.iter().map(|n| n / sample.tokens).collect();
        for (i, a) in row.iter().enumerate().filter(|(_, a)| **a > 0.0) {
            target[i] += weight * a;
            for (j, b) in row.iter().enumerate() {
                normal[i][j] += weight * a * b;
            }
        }
    }
    let mut fitted = vec![0.5; FEATURES];
    for _ in 0..20_000 {
        for i in 0..FEATURES {
            if normal[i][i] < 1e-6 {
                continue;
            }
            let others: f64 = dot(&normal[i], &fitted) - normal[i][i] * fitted[i];
            let (low, high) = bounds(i);
            fitted[i] = ((target[i] - others) / normal[i][i]).clamp(low, high);
        }
    }
    fitted
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Prints the error per kind of text on the evaluation chunks.
fn report(title: &str, samples: &[Sample], estimate: impl Fn(&Sample) -> f64) {
    println!("\n{title}: error in percent, p5 / p50 / p95, mean of the absolute");
    let mut kinds: Vec<(String, Vec<f64>)> = Vec::new();
    for sample in samples.iter().skip(1).step_by(2) {
        let error = 100.0 * (estimate(sample) / sample.tokens - 1.0);
        match kinds.last_mut().filter(|(file, _)| *file == sample.file) {
            Some((_, errors)) => errors.push(error),
            None => kinds.push((sample.file.clone(), vec![error])),
        }
    }
    let mut means = Vec::new();
    for (file, mut errors) in kinds {
        errors.sort_by(f64::total_cmp);
        let at = |percent: usize| errors[(errors.len() - 1) * percent / 100];
        let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / errors.len() as f64;
        println!(
            "  {file:<36} {:>6.1} {:>6.1} {:>6.1}   {mean:>5.1}",
            at(5),
            at(50),
            at(95)
        );
        means.push((file, mean));
    }
    let mean = |part: &str| {
        let of: Vec<f64> = means
            .iter()
            .filter(|m| m.0.starts_with(part))
            .map(|m| m.1)
            .collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    println!(
        "  all kinds {:.1}, sessions {:.1}",
        mean(""),
        mean("corpus")
    );
}
