//! The figures at an axis.

/// The approximate number of figures at an axis.
const FIGURES: f64 = 5.0;

/// Round figures from 0 up to `end`.
pub fn ticks(end: f64) -> Vec<f64> {
    let rough = end / FIGURES;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.into_iter().map(|step| step * power);
    let step = step.into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(end);
    let mut found = Vec::new();
    let mut value = 0.0;
    // The margin allows for rounding in the sum. The limit ends the loop if `end` is not a number.
    while value <= end * 1.0001 && found.len() < 20 {
        found.push(value);
        value += step;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_an_axis_are_round() {
        assert_eq!(ticks(1.05), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ticks(100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.04).len(), 5);
    }
}
