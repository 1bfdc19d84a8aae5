//! The files of the dashboard, as they are in the folder `assets`.

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, media type and text of every file.
const FILES: [(&str, &str, &str); 18] = [
    (
        "",
        "text/html; charset=utf-8",
        include_str!("assets/index.html"),
    ),
    (
        "/style.css",
        "text/css; charset=utf-8",
        include_str!("assets/style.css"),
    ),
    (
        "/layout.css",
        "text/css; charset=utf-8",
        include_str!("assets/layout.css"),
    ),
    (
        "/icon.svg",
        "image/svg+xml",
        include_str!("assets/icon.svg"),
    ),
    ("/app.js", JAVASCRIPT, include_str!("assets/app.js")),
    ("/data.js", JAVASCRIPT, include_str!("assets/data.js")),
    (
        "/elements.js",
        JAVASCRIPT,
        include_str!("assets/elements.js"),
    ),
    ("/figures.js", JAVASCRIPT, include_str!("assets/figures.js")),
    (
        "/sessions.js",
        JAVASCRIPT,
        include_str!("assets/sessions.js"),
    ),
    ("/session.js", JAVASCRIPT, include_str!("assets/session.js")),
    ("/film.js", JAVASCRIPT, include_str!("assets/film.js")),
    (
        "/film-text.js",
        JAVASCRIPT,
        include_str!("assets/film-text.js"),
    ),
    (
        "/film-marks.js",
        JAVASCRIPT,
        include_str!("assets/film-marks.js"),
    ),
    ("/message.js", JAVASCRIPT, include_str!("assets/message.js")),
    (
        "/messages.js",
        JAVASCRIPT,
        include_str!("assets/messages.js"),
    ),
    ("/savings.js", JAVASCRIPT, include_str!("assets/savings.js")),
    ("/store.js", JAVASCRIPT, include_str!("assets/store.js")),
    ("/doctor.js", JAVASCRIPT, include_str!("assets/doctor.js")),
];

/// The file at a place below the dashboard.
pub(super) fn find(place: &str) -> Option<(&'static str, &'static str)> {
    let place = place.trim_end_matches('/');
    let mut files = FILES.iter();
    let found = files.find(|(name, _, _)| *name == place);
    found.map(|(_, kind, text)| (*kind, *text))
}
