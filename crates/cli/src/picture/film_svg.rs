//! The film strip of a session, as a picture without scripts.

use std::fmt::Write as _;

use trimtab::film::{FilmBand, FilmColumn, FilmRegion, FilmScene, MessageState};

use super::{OtherPreset, SessionPicture, escaped, ticks};
use crate::ui::number::short;

/// The height of the picture in its own units; its width is the number of calls.
const HEIGHT: f64 = 1_000.0;

/// The name of a region in the style.
pub(super) fn class_of(region: FilmRegion) -> &'static str {
    match region {
        FilmRegion::System => "system",
        FilmRegion::User => "user",
        FilmRegion::Assistant => "assistant",
        FilmRegion::Output => "output",
        FilmRegion::Ours => "ours",
    }
}

/// The strip with its axis. Texts are placed outside the drawing, so that they keep their size on a
/// small screen.
pub(super) fn draw(picture: &SessionPicture) -> String {
    let scale = Scale::of(picture);
    let attributes = "role=\"img\" aria-label=\"tokens sent at each call\"";
    let svg = strip(picture, &scale, attributes, &picture.others);
    svg + &labels(picture, &scale)
}

/// The strip alone, stretched to its frame, with a line for each of `others`.
pub(super) fn strip(
    picture: &SessionPicture,
    scale: &Scale,
    attributes: &str,
    others: &[OtherPreset],
) -> String {
    let columns = &picture.film.columns;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {HEIGHT}\" preserveAspectRatio=\"none\" {attributes}>",
        columns.len().max(1)
    );
    let mut first = 0;
    for (number, scene) in picture.film.scenes.iter().enumerate() {
        // Columns are sorted by their scenes.
        let here = columns.iter().skip(first);
        let count = here.take_while(|column| column.scene == number).count();
        let within = columns.get(first..first + count).unwrap_or_default();
        draw_scene(&mut svg, scale, scene, (first, within));
        first += count;
    }
    for (_, sizes, _) in others {
        polyline(&mut svg, scale, "", sizes.iter().copied());
    }
    let whole = columns.iter().map(|column| column.whole);
    polyline(&mut svg, scale, "all", whole);
    let limit = scale.y(picture.window);
    if picture.window as f64 <= scale.top {
        let width = columns.len();
        let _ = write!(
            svg,
            "<line x1=\"0\" x2=\"{width}\" y1=\"{limit:.1}\" y2=\"{limit:.1}\"/>"
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Converts tokens to heights.
pub(super) struct Scale {
    /// The number of tokens at the upper end.
    pub(super) top: f64,
}

impl Scale {
    /// Room for the largest window, and for the limit if it is not far above.
    fn of(picture: &SessionPicture) -> Self {
        let own = picture.film.columns.iter().map(|column| column.tokens);
        let largest = own.max().unwrap_or(1).max(1);
        // A limit far above the windows would make them too flat to read.
        let limit = Some(picture.window).filter(|window| *window < 3 * largest);
        Self {
            top: largest.max(limit.unwrap_or(0)) as f64 * 1.08,
        }
    }

    /// Room for everything that the session has.
    pub(super) fn of_whole(picture: &SessionPicture) -> Self {
        let whole = picture.film.columns.iter().map(|column| column.whole);
        let largest = whole.max().unwrap_or(0).max(picture.window);
        Self {
            top: largest as f64 * 1.04,
        }
    }

    fn y(&self, tokens: u64) -> f64 {
        HEIGHT * (1.0 - (tokens as f64 / self.top).min(1.0))
    }

    /// The position above the lower end, in percent of the height.
    pub(super) fn place(&self, tokens: u64) -> f64 {
        100.0 - self.y(tokens) / HEIGHT * 100.0
    }
}

/// A band is one rectangle: from the call that first sent it to the end of the scene.
fn draw_scene(
    svg: &mut String,
    scale: &Scale,
    scene: &FilmScene,
    (first, columns): (usize, &[FilmColumn]),
) {
    let mut from = 0;
    let mut sent_at = 0;
    for band in &scene.bands {
        let to = from + band.tokens;
        // A band was first sent by the first call whose window reaches its upper edge.
        let is_before = |at: usize| columns.get(at).is_some_and(|column| column.tokens < to);
        while sent_at + 1 < columns.len() && is_before(sent_at) {
            sent_at += 1;
        }
        let (top, bottom) = (scale.y(to), scale.y(from));
        let _ = write!(
            svg,
            "<rect class=\"{}\"{} x=\"{}\" y=\"{top:.1}\" width=\"{}\" height=\"{:.1}\"/>",
            class_of(band.region),
            opacity(band),
            first + sent_at,
            columns.len() - sent_at.min(columns.len()),
            bottom - top,
        );
        from = to;
    }
}

fn opacity(band: &FilmBand) -> &'static str {
    match band.state {
        MessageState::View => " opacity=\".62\"",
        MessageState::Placeholder => " opacity=\".34\"",
        _ => "",
    }
}

fn polyline(svg: &mut String, scale: &Scale, class: &str, sizes: impl Iterator<Item = u64>) {
    let _ = write!(svg, "<polyline class=\"{class}\" points=\"");
    for (call, tokens) in sizes.enumerate() {
        let y = scale.y(tokens);
        // Two points per call draw a step instead of a slope.
        let _ = write!(svg, "{call},{y:.1} {},{y:.1} ", call + 1);
    }
    svg.push_str("\"/>");
}

fn labels(picture: &SessionPicture, scale: &Scale) -> String {
    let mut text = String::new();
    for tokens in ticks(scale.top) {
        let place = tokens / scale.top * 100.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of tokens"
        )]
        let tokens = short(tokens as u64);
        let _ = write!(
            text,
            "<span class=\"axis\" style=\"bottom:{place:.1}%\">{tokens}</span>"
        );
    }
    if picture.window as f64 <= scale.top {
        let place = scale.place(picture.window);
        let _ = write!(
            text,
            "<span class=\"limit\" style=\"bottom:{place:.1}%\">window {}</span>",
            short(picture.window)
        );
    }
    let calls = picture.film.columns.len();
    let _ = write!(text, "<span class=\"calls\">{calls} calls</span>");
    text + &names_of_others(picture, scale)
}

/// Lines whose ends are closer than this, in percent of the height, share a label.
const SAME_PLACE: f64 = 6.0;

/// The names of other presets, at the ends of their lines. A preset that sends the same as the
/// chosen one gets no label.
fn names_of_others(picture: &SessionPicture, scale: &Scale) -> String {
    let columns = picture.film.columns.iter();
    let own: Vec<u64> = columns.map(|column| column.tokens).collect();
    let differs = |sizes: &[u64]| {
        let mut pairs = sizes.iter().zip(&own);
        // A difference of 2 % is hardly visible.
        pairs.any(|(other, own)| other.abs_diff(*own) > own / 50)
    };
    let mut ends: Vec<(f64, String)> = Vec::new();
    for (name, sizes, _) in picture.others.iter().filter(|other| differs(&other.1)) {
        let place = scale.place(sizes.last().copied().unwrap_or(0));
        let near = |end: &&mut (f64, String)| (end.0 - place).abs() < SAME_PLACE;
        match ends.iter_mut().find(near) {
            Some((_, names)) => {
                let _ = write!(names, ", {name}");
            }
            None => ends.push((place, name.clone())),
        }
    }
    let span = |(place, names): &(f64, String)| {
        let names = escaped(names);
        format!("<span class=\"other\" style=\"bottom:{place:.1}%\">{names}</span>")
    };
    ends.iter().map(span).collect()
}
