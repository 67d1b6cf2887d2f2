//! `tools_cache.json` of an existing installation: taken over at the start, kept up to date since.
//!
//! Invariant: a file that could not be read is never written over.
//! Invariant: whoever reads the file finds it whole: it is written elsewhere and renamed.

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
    /// Reads it, if it is there. None if there is something that cannot be read: then it is left
    /// alone.
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
                tracing::error!(%path, %why, "the tools cache is not taken over, and not written");
                None
            }
        }
    }

    /// What it has of kinds and configurations that the showcase knows nothing of, as far as there
    /// is room.
    pub(crate) fn new_to(&self, showcase: &[ShowcaseEntry]) -> Vec<ShowcaseEntry> {
        let (new, left_out) = new_to(showcase, &self.entries, ShowcaseLimits::default());
        if left_out > 0 {
            let path = self.path.display();
            tracing::error!(%path, left_out, "the showcase has no room for all of the tools cache");
        }
        new
    }

    /// From now on it holds the showcase of this driver.
    pub(crate) fn keep_for(&self, driver: &Arc<SessionDriver>) {
        self.driver.get_or_init(|| Arc::downgrade(driver));
    }

    /// What is to be done whenever the showcase was written.
    pub(crate) fn upkeep(&self) -> Box<dyn Fn() + Send + Sync> {
        let (driver, path) = (Arc::clone(&self.driver), self.path.clone());
        Box::new(move || {
            let Some(driver) = driver.get().and_then(Weak::upgrade) else { return };
            let written =
                tokio::task::block_in_place(|| trusted::put(&path, driver.export().as_bytes()));
            if let Err(error) = written {
                tracing::error!(path = %path.display(), %error, "the tools cache cannot be written");
            }
        })
    }
}
