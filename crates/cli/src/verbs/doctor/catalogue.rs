//! Checks the model catalogue.

use super::check::DoctorCheck;
use crate::catalogue;

pub(super) fn check() -> DoctorCheck {
    let own = catalogue::path().filter(|path| path.exists());
    let from = own.map_or("built in".to_owned(), |path| path.display().to_string());
    match catalogue::load() {
        Ok(found) => {
            let models = found.ids().count();
            DoctorCheck::ok("catalogue", format!("{models} models, {from}"))
        }
        Err(failure) => DoctorCheck::of_failure("catalogue", &failure),
    }
}
