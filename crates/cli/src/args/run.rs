//! Arguments of `toolgate run`.

use std::path::PathBuf;

use super::DataArgs;
use crate::log::LogFormat;

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("to").required(true).args(["url", "gateway", "command"]),
    after_help = "Examples:
  toolgate run --policy policy.yaml -- npx -y @modelcontextprotocol/server-memory
  toolgate run --url https://mcp.example.com/mcp --header \"Authorization: Bearer env:TOKEN\"
  toolgate run --gateway http://127.0.0.1:4001/mcp --token env:TOOLGATE_TOKEN"
)]
pub(crate) struct RunArgs {
    /// The command that starts an MCP server on stdio, after `--`
    #[arg(value_name = "CMD", last = true)]
    pub(crate) command: Vec<String>,
    /// The URL of an MCP server (streamable HTTP, or HTTP+SSE of 2024-11-05)
    #[arg(long, visible_alias = "upstream", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A header for the URL, its value as a reference: "Authorization: env:TOKEN"; may be given
    /// several times
    #[arg(long = "header", value_name = "NAME: REFERENCE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// The endpoint of a running toolgate, for clients that only speak stdio: that gateway decides and
    /// records
    #[arg(long, value_name = "URL", conflicts_with_all = ["policy", "name"])]
    pub(crate) gateway: Option<String>,
    /// The token of a grant for the gateway, as a reference: env:NAME or file:PATH
    #[arg(long, value_name = "REFERENCE", requires = "gateway")]
    pub(crate) token: Option<String>,
    /// The policy that decides the calls [default: the built-in `recommended` policy in shadow mode;
    /// required once a grant exists]
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// The name of the server in the audit and for policies [default: made of the command or the URL]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Format of the log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log: LogFormat,
}
