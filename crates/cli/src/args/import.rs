//! What can be typed after `import`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// A `v8project.yaml`, or a `tools_cache.json`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where to write the configuration; keep it in the folder of FILE [default: to stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Data folder that takes the tools [default: as the imported configuration has it]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    pub(crate) data: Option<PathBuf>,
}
