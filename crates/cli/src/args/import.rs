//! Arguments of `toolgate import`.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The file of an MCP client (.mcp.json, Claude, Cursor, VS Code, Windsurf, Codex, Gemini, Cline,
    /// Zed), a `v8project.yaml`, or a `tools_cache.json`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the configuration to this file (toolgate.yaml) and the tools to the showcase; without it nothing is written
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "toolgate.yaml")]
    pub(crate) write: Option<PathBuf>,
    /// Replace a file that this command did not write, or that was edited since; a backup is kept
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Move literal secrets into files for their owner alone without asking
    #[arg(long, requires = "write")]
    pub(crate) yes: bool,
    /// Data folder for the imported tools [default: `data` of the imported configuration]
    #[arg(long, value_name = "DIR", env = "TOOLGATE_DATA")]
    pub(crate) data: Option<PathBuf>,
}
