//! What can be typed after `demo`.

use clap::Subcommand;
use toolgate_onec::ClientProfile;

use super::DataArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    pub(crate) verb: DemoVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoVerb {
    /// Play a 1C client: dial in, publish its tools, answer calls, until Ctrl-C
    Onec(OneCArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneCArgs {
    /// Where to dial; a token stands behind the path: .../sessions/TOKEN
    /// [default: the gateway that runs from the data folder, else ws://127.0.0.1:4000/sessions]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Its client_uid, which becomes the session_id
    #[arg(long, default_value = "demo-1")]
    pub(crate) uid: String,
    /// Which program to play
    #[arg(long, default_value = "thin")]
    pub(crate) profile: ClientProfile,
    /// Its kind [default: that of the profile]
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Its infobase
    #[arg(long, default_value = "demo")]
    pub(crate) base: String,
    /// Its config_id [default: none is sent]
    #[arg(long, value_name = "ID")]
    pub(crate) config_id: Option<String>,
    /// Drop the socket and come back every so many seconds [default: 60 for a server, else never]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) reconnect_every: Option<u64>,
}
