//! Plots as SVG, without scripts.

use std::fmt::Write;

/// Colours that are told apart by people who see fewer of them, too.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#332288", "#777777",
];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 120.0;

/// The colour of the thing with this number.
pub fn colour(number: usize) -> &'static str {
    COLOURS
        .get(number % COLOURS.len())
        .copied()
        .unwrap_or("#000000")
}

/// A line or a point with its name.
pub struct Series {
    /// What it is called.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// How a plot is labelled.
pub struct Axes<'a> {
    /// Below.
    pub x: &'a str,
    /// At the side.
    pub y: &'a str,
    /// The least that the upper end of y is.
    pub y_top: f64,
}

struct Frame {
    x: f64,
    y: f64,
}

impl Frame {
    fn new(series: &[Series], axes: &Axes<'_>) -> Self {
        let points = || series.iter().flat_map(|series| &series.points);
        Self {
            x: points()
                .map(|point| point.0)
                .fold(f64::MIN_POSITIVE, f64::max)
                * 1.05,
            y: points().map(|point| point.1).fold(axes.y_top, f64::max),
        }
    }

    fn place(&self, point: (f64, f64)) -> (f64, f64) {
        let (across, up) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let x = LEFT + point.0 / self.x * across;
        let y = HEIGHT - BOTTOM - point.1 / self.y * up;
        (x, y)
    }
}

/// Lines over calls.
pub fn lines(series: &[Series], axes: &Axes<'_>) -> String {
    let frame = Frame::new(series, axes);
    let mut svg = begin(&frame, axes);
    for (number, one) in series.iter().enumerate() {
        let mut path = String::new();
        for point in &one.points {
            let (x, y) = frame.place(*point);
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let _ = write!(
            svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{path}\"/>",
            colour(number)
        );
        legend(&mut svg, number, &one.name);
    }
    svg.push_str("</svg>");
    svg
}

/// A named point for each series.
pub fn points(series: &[Series], axes: &Axes<'_>) -> String {
    let frame = Frame::new(series, axes);
    let mut svg = begin(&frame, axes);
    for (number, one) in series.iter().enumerate() {
        for point in &one.points {
            let (x, y) = frame.place(*point);
            let colour = colour(number);
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"
            );
        }
        legend(&mut svg, number, &one.name);
    }
    svg.push_str("</svg>");
    svg
}

fn begin(frame: &Frame, axes: &Axes<'_>) -> String {
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (x, y) = frame.place((frame.x * share, frame.y * share));
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            figure(frame.y * share),
            floor + 16.0,
            figure(frame.x * share),
        );
    }
    let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
    let _ = write!(
        svg,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text x=\"12\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {:.1})\">{}</text>",
        HEIGHT - 4.0,
        escaped(axes.x),
        HEIGHT / 2.0,
        HEIGHT / 2.0,
        escaped(axes.y),
    );
    svg
}

fn legend(svg: &mut String, number: usize, name: &str) {
    let y = TOP + 10.0 + 18.0 * number as f64;
    let x = WIDTH - RIGHT + 14.0;
    let _ = write!(
        svg,
        "<rect x=\"{x}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/>\
         <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
        y - 9.0,
        colour(number),
        x + 16.0,
        escaped(name),
    );
}

fn figure(value: f64) -> String {
    if value >= 1_000.0 {
        format!("{:.0}k", value / 1_000.0)
    } else if value >= 10.0 || value == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// A text that HTML and SVG take as text.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
