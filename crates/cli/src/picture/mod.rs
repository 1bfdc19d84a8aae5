//! A session as a page or an image to share: one file, no scripts, nothing fetched.
//!
//! `film_svg` draws the film strip, `image` makes an image of it, and this module writes the words
//! and figures of the page around it.

mod axis;
mod film_svg;
mod image;
mod page_style;

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use trimtab::film::{Film, FilmRegion};
use trimtab::replay::ReplayReport;

use crate::proxy::savings::dollars;
use crate::ui::number::{counted, percent, short};

pub use axis::ticks;
pub use page_style::{COLOURS, STYLE};

/// The name of a preset, the tokens of each call, and their costs.
pub type OtherPreset = (String, Vec<u64>, ReplayReport);

/// A session under one preset, compared with others.
pub struct SessionPicture {
    /// The name of the session.
    pub title: String,
    /// The preset that is highlighted.
    pub preset: String,
    /// The windows that it sends.
    pub film: Film,
    /// Its costs.
    pub report: ReplayReport,
    /// The costs of sending everything.
    pub everything: ReplayReport,
    /// Other presets, for the page.
    pub others: Vec<OtherPreset>,
    /// The model's window, in tokens.
    pub window: u64,
}

impl SessionPicture {
    /// The headline, the film and a table of all presets, as a part of a page.
    pub fn section(&self) -> String {
        let mut text = format!(
            "<p class=\"headline\">{}</p><div class=\"film\">{}</div>",
            escaped(&self.headline()),
            film_svg::draw(self)
        );
        text.push_str("<ul class=\"legend\">");
        for region in FilmRegion::ALL {
            let class = film_svg::class_of(region);
            let _ = write!(text, "<li><i class=\"{class}\"></i>{}", region.label());
        }
        text.push_str(
            "<li>paler: shown in part<li>thin lines: other presets<li>dotted: sending everything</ul>",
        );
        text.push_str(&self.table());
        text
    }

    /// The savings of the preset, in words and money.
    fn headline(&self) -> String {
        let (with, without) = (&self.report, &self.everything);
        let (ours, all) = (with.billed.dollars(), without.billed.dollars());
        let count = |calls| counted(usize::try_from(calls).unwrap_or(usize::MAX), "call");
        let calls = count(with.calls);
        if with.tokens == without.tokens {
            return format!(
                "Under {}, {calls} send {} tokens unchanged: everything fits the window. Their input \
                 costs {}.",
                self.preset,
                short(with.tokens),
                dollars(ours),
            );
        }
        let refused = match without.over {
            0 => String::new(),
            over => format!(" Without it, {} would not fit the window.", count(over)),
        };
        // A model without prices costs nothing, so the divisor must not be zero.
        let change = if ours <= all {
            format!("{:.0} % less", (1.0 - ours / all.max(1e-12)) * 100.0)
        } else {
            format!("{:.0} % more", (ours / all.max(1e-12) - 1.0) * 100.0)
        };
        format!(
            "Under {}, {calls} send {} tokens instead of {}. Their input costs {} instead of {}: \
             {change}.{refused}",
            self.preset,
            short(with.tokens),
            short(without.tokens),
            dollars(ours),
            dollars(all),
        )
    }

    fn table(&self) -> String {
        let mut table = String::from(
            "<div class=\"wide\"><table><tr><th>preset<th>tokens<th>input cost<th>against everything\
             <th>largest window<th>cache breaks",
        );
        let own = std::iter::once((self.preset.as_str(), &self.report, "chosen"));
        let others = self
            .others
            .iter()
            .map(|(name, _, report)| (name.as_str(), report, ""));
        let all = std::iter::once(("everything", &self.everything, ""));
        for (name, report, class) in own.chain(others).chain(all) {
            let (cost, whole) = (report.billed.pico(), self.everything.billed.pico());
            let _ = write!(
                table,
                "<tr class=\"{class}\"><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
                escaped(name),
                short(report.tokens),
                dollars(report.billed.dollars()),
                percent(cost, whole),
                short(report.largest),
                report.breaks,
            );
        }
        table.push_str("</table></div>");
        table
    }

    /// A whole page with this picture.
    pub fn page(&self) -> String {
        let title = escaped(&self.title);
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title} - Trimtab</title><style>{COLOURS}{STYLE}</style>\
             <h1>{title}</h1><p>{}</p>{}</html>\n",
            byline(),
            self.section()
        )
    }

    /// The headline and the film as an SVG image.
    pub fn image(&self) -> String {
        image::draw(self)
    }
}

/// The product and the date.
pub fn byline() -> String {
    let now = UNIX_EPOCH + Duration::from_millis(trimtab::store::now_millis());
    let date = httpdate::fmt_http_date(now);
    // "Mon, 16 Nov 2026 12:48:03 GMT": only the date is needed.
    let day: Vec<&str> = date.split(' ').skip(1).take(3).collect();
    format!("Trimtab {}, {}", env!("CARGO_PKG_VERSION"), day.join(" "))
}

/// Escapes text for HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
