//! The design system on one page, in debug builds.

use askama::Template;

use crate::assets;
use crate::problem::Problem;
use crate::shell::Shell;
use crate::visit::{Outcome, Visit, page};

#[derive(Template)]
#[template(path = "styles.html")]
struct Styles {
    s: Shell,
    assets: &'static str,
}

/// The page; release builds do not have it.
pub(crate) async fn show(visit: Visit) -> Outcome {
    if !cfg!(debug_assertions) {
        return Err(Problem::NotFound);
    }
    let s = Shell::of(&visit, "").await?;
    page(&Styles { s, assets: &assets::VERSION })
}
