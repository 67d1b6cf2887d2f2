//! `tools_cache.json` of an existing installation: imported at the start, then kept up to date.
//!
//! Invariant: a file that could not be read is never overwritten.
//! Invariant: a reader never sees half a file: it is written beside it and renamed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use toolgate_control::trusted;
use toolgate_gateway::SessionDriver;
use toolgate_session::{ShowcaseEntry, ShowcaseLimits, import, new_to};

/// The file while sessions are served.
pub(crate) struct CacheFile {
    entries: Vec<ShowcaseEntry>,
    path: PathBuf,
    driver: Arc<OnceLock<Weak<SessionDriver>>>,
}

impl CacheFile {
    /// Reads the file if it exists. `None` if it cannot be read: then it is not touched.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let read = match trusted::read_text(path) {
            Ok(text) => import(&text).map_err(|error| error.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(entries) => {
                Some(Self { entries, path: path.to_owned(), driver: Arc::new(OnceLock::new()) })
            }
            Err(why) => {
                let path = path.display();
                tracing::error!(%path, %why, "cannot read the tools cache; it is neither imported nor updated");
                None
            }
        }
    }

    /// Its entries of kinds and configurations that the showcase does not have, as far as there is
    /// room.
    pub(crate) fn new_to(&self, showcase: &[ShowcaseEntry]) -> Vec<ShowcaseEntry> {
        let (new, left_out) = new_to(showcase, &self.entries, ShowcaseLimits::default());
        if left_out > 0 {
            let path = self.path.display();
            tracing::error!(%path, left_out, "tools cache imported in part: the showcase is full");
        }
        new
    }

    /// Binds the file to the showcase of this driver.
    pub(crate) fn keep_for(&self, driver: &Arc<SessionDriver>) {
        self.driver.get_or_init(|| Arc::downgrade(driver));
    }

    /// Updates the file; called whenever the showcase was stored.
    pub(crate) fn upkeep(&self) -> Box<dyn Fn() + Send + Sync> {
        let (driver, path) = (Arc::clone(&self.driver), self.path.clone());
        Box::new(move || {
            let Some(driver) = driver.get().and_then(Weak::upgrade) else { return };
            let written =
                tokio::task::block_in_place(|| trusted::put(&path, driver.export().as_bytes()));
            if let Err(error) = written {
                tracing::error!(path = %path.display(), %error, "cannot write the tools cache");
            }
        })
    }
}
