//! A session as an SVG image: the headline and the film, for pages that show images.

use std::fmt::Write as _;

use trimtab::film::FilmRegion;

use super::film_svg::{Scale, class_of, strip};
use super::{COLOURS, SessionPicture, escaped, ticks};
use crate::ui::number::short;

const WIDTH: f64 = 880.0;
/// The frame of the film.
const LEFT: f64 = 58.0;
const FILM_WIDTH: f64 = WIDTH - LEFT - 20.0;
const FILM_HEIGHT: f64 = 250.0;
/// The distance between two lines of the headline.
const LINE: f64 = 23.0;
/// The height below the film, for the number of calls and the legend.
const BELOW: f64 = 62.0;

/// An image may be shown on a page of any colour, so it has its own background.
const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:var(--soft)}.headline{font-size:16px;font-weight:600;\
fill:var(--ink)}.ground{fill:var(--page);stroke:var(--line)}.sunk{fill:var(--sunk)}\
.end{text-anchor:end}.limit{fill:var(--bad)}.everything{fill:var(--ink)}\
polyline{fill:none;stroke:var(--ink);stroke-dasharray:2 3;vector-effect:non-scaling-stroke}\
line{stroke:var(--bad);vector-effect:non-scaling-stroke}";

/// The image.
pub(super) fn draw(picture: &SessionPicture) -> String {
    let headline = picture.headline();
    // Images do not break lines, so each sentence has one.
    let sentences: Vec<&str> = headline.split_inclusive(". ").map(str::trim_end).collect();
    let top = 22.0 + sentences.len() as f64 * LINE;
    let height = top + FILM_HEIGHT + BELOW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{}\"><style>{COLOURS}{STYLE}</style>\n\
         <rect class=\"ground\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        escaped(&headline),
        WIDTH - 1.0,
        height - 1.0,
    );
    for (number, sentence) in sentences.iter().enumerate() {
        let y = 30.0 + number as f64 * LINE;
        label(&mut svg, "headline", (16.0, y), sentence);
    }
    film(&mut svg, picture, top);
    legend(&mut svg, top + FILM_HEIGHT + 44.0);
    svg.push_str("</svg>\n");
    svg
}

/// The film with its axis, from `top` on.
fn film(svg: &mut String, picture: &SessionPicture, top: f64) {
    let scale = Scale::of_whole(picture);
    let frame = format!("x=\"{LEFT}\" y=\"{top}\" width=\"{FILM_WIDTH}\" height=\"{FILM_HEIGHT}\"");
    let _ = writeln!(svg, "<rect class=\"sunk\" {frame}/>");
    // Other presets would be lines without a label.
    let _ = writeln!(svg, "{}", strip(picture, &scale, &frame, &[]));
    let height = |tokens: u64| top + FILM_HEIGHT * (1.0 - scale.place(tokens) / 100.0);
    for tokens in ticks(scale.top) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of tokens"
        )]
        let tokens = tokens as u64;
        let place = (LEFT - 8.0, height(tokens) + 4.0);
        label(svg, "end", place, &short(tokens));
    }
    let limit = format!("window {}", short(picture.window));
    let place = (LEFT + 8.0, height(picture.window) - 7.0);
    label(svg, "limit", place, &limit);
    let columns = &picture.film.columns;
    let whole = columns.last().map_or(0, |column| column.whole);
    if whole > picture.window {
        let right = LEFT + FILM_WIDTH;
        let text = format!("sending everything: {}", short(whole));
        // Left of the end of its line, which rises.
        let place = (right - FILM_WIDTH / 5.0, height(whole) + 8.0);
        label(svg, "everything end", place, &text);
    }
    let calls = format!("{} calls", columns.len());
    let place = (LEFT + FILM_WIDTH, top + FILM_HEIGHT + 17.0);
    label(svg, "end", place, &calls);
}

fn legend(svg: &mut String, y: f64) {
    /// The average width of a letter.
    const LETTER: f64 = 6.6;
    let mut x = LEFT;
    for region in FilmRegion::ALL {
        let class = class_of(region);
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.0}\" y=\"{}\" width=\"10\" height=\"10\" rx=\"2\"/>",
            y - 9.0
        );
        label(svg, "", (x + 15.0, y), region.label());
        x += 15.0 + region.label().len() as f64 * LETTER + 16.0;
    }
    label(svg, "", (x, y), "paler: shown in part");
}

fn label(svg: &mut String, class: &str, (x, y): (f64, f64), text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.0}\">{text}</text>"
    );
}
