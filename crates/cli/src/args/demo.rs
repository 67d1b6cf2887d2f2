//! Arguments of `toolgate demo`.

use clap::{Subcommand, ValueEnum};
use toolgate_onec::ClientProfile;

use super::DataArgs;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<DemoVerb>,
    /// End after the tour, instead of waiting for Ctrl-C
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoVerb {
    /// Simulate a 1C client: connect, publish tools and answer calls until Ctrl-C
    Onec(OneCArgs),
    /// One of the servers of the demo, over stdio
    #[command(hide = true)]
    Server {
        /// Its kind
        kind: DemoServer,
    },
}

/// A server of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoServer {
    /// Does what it promises
    Safe,
    /// Has instructions for agents in its description
    Poisoned,
    /// Changes a definition after it was listed
    RugPuller,
}

impl DemoServer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Poisoned => "poisoned",
            Self::RugPuller => "rug-puller",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneCArgs {
    /// Address to connect to; a token is the last part of the path: .../sessions/TOKEN
    /// [default: the gateway that runs on the data folder, else ws://127.0.0.1:4000/sessions]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Its client_uid, which becomes the session_id
    #[arg(long, default_value = "demo-1")]
    pub(crate) uid: String,
    /// The program to simulate
    #[arg(long, default_value = "thin")]
    pub(crate) profile: ClientProfile,
    /// Its kind [default: the kind of the profile]
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Its infobase
    #[arg(long, default_value = "demo")]
    pub(crate) base: String,
    /// Its config_id [default: not sent]
    #[arg(long, value_name = "ID")]
    pub(crate) config_id: Option<String>,
    /// Drop the socket and reconnect every so many seconds [default: 60 for a server, else never]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) reconnect_every: Option<u64>,
}
