//! The whole binary as its users meet it: real processes, real sockets, real children.
//!
//! `gate` starts and stops `toolgate`, `wire` speaks HTTP as badly as a test needs, `agent` speaks
//! MCP, `api` the admin API, `peer` is a server over stdio, `upstream` and `recorder` one over HTTP, `program` dials
//! in over WebSocket.
//!
//! Invariant: nothing here waits for a time to pass; what is waited for is a line, a file, a
//! process or an answer, and [`gate::GUARD`] only ends a test that would hang.
//!
//! `UPDATE=1 cargo test -p toolgate --test e2e` rewrites the golden texts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic, in their helpers too"
)]

#[path = "e2e/agent.rs"]
mod agent;
#[path = "e2e/api.rs"]
mod api;
#[path = "e2e/gate.rs"]
mod gate;
#[path = "e2e/golden.rs"]
mod golden;
#[path = "e2e/peer.rs"]
mod peer;
#[path = "e2e/program.rs"]
mod program;
#[path = "e2e/recorder.rs"]
mod recorder;
#[path = "e2e/recording.rs"]
mod recording;
#[path = "e2e/sessionless.rs"]
mod sessionless;
#[path = "../src/args/shell.rs"]
mod shell;
#[path = "e2e/upstream.rs"]
mod upstream;
#[path = "e2e/wire.rs"]
mod wire;

#[path = "e2e/admin.rs"]
mod admin;
#[path = "e2e/approvals.rs"]
mod approvals;
#[path = "e2e/attributed.rs"]
mod attributed;
#[path = "e2e/audit.rs"]
mod audit;
#[path = "e2e/auth_failures.rs"]
mod auth_failures;
#[path = "e2e/canary.rs"]
mod canary;
#[path = "e2e/catalog.rs"]
mod catalog;
#[path = "e2e/children.rs"]
mod children;
#[path = "e2e/clients.rs"]
mod clients;
#[path = "e2e/commands.rs"]
mod commands;
#[path = "e2e/console.rs"]
mod console;
#[path = "e2e/demo.rs"]
mod demo;
#[path = "e2e/disk.rs"]
mod disk;
#[path = "e2e/doctor.rs"]
mod doctor;
#[path = "e2e/documented.rs"]
mod documented;
#[path = "e2e/edges.rs"]
mod edges;
#[path = "e2e/enforce.rs"]
mod enforce;
#[path = "e2e/explain.rs"]
mod explain;
#[path = "e2e/failures.rs"]
mod failures;
#[path = "e2e/files.rs"]
mod files;
#[path = "e2e/freeze.rs"]
mod freeze;
#[path = "e2e/heavy.rs"]
mod heavy;
#[path = "e2e/hostile.rs"]
mod hostile;
#[path = "e2e/isolation.rs"]
mod isolation;
#[path = "e2e/late_bodies.rs"]
mod late_bodies;
#[path = "e2e/legacy.rs"]
mod legacy;
#[path = "e2e/listeners.rs"]
mod listeners;
#[path = "e2e/local.rs"]
mod local;
#[path = "e2e/modern.rs"]
mod modern;
#[path = "e2e/monitoring.rs"]
mod monitoring;
#[path = "e2e/once.rs"]
mod once;
#[path = "e2e/openings.rs"]
mod openings;
#[path = "e2e/operations.rs"]
mod operations;
#[path = "e2e/operator.rs"]
mod operator;
#[path = "e2e/passing.rs"]
mod passing;
#[path = "e2e/permissions.rs"]
mod permissions;
#[path = "e2e/pins.rs"]
mod pins;
#[path = "e2e/plan.rs"]
mod plan;
#[path = "e2e/policy.rs"]
mod policy;
#[path = "e2e/processes.rs"]
mod processes;
#[path = "e2e/readings.rs"]
mod readings;
#[path = "e2e/refusals.rs"]
mod refusals;
#[path = "e2e/reload.rs"]
mod reload;
#[path = "e2e/repeated.rs"]
mod repeated;
#[path = "e2e/resumption.rs"]
mod resumption;
#[path = "e2e/rounds.rs"]
mod rounds;
#[path = "e2e/run.rs"]
mod run;
#[path = "e2e/scan.rs"]
mod scan;
#[path = "e2e/secrets.rs"]
mod secrets;
#[path = "e2e/sessions.rs"]
mod sessions;
#[path = "e2e/side_doors.rs"]
mod side_doors;
#[path = "e2e/slips.rs"]
mod slips;
#[path = "e2e/start.rs"]
mod start;
#[path = "e2e/stop.rs"]
mod stop;
#[path = "e2e/tasks.rs"]
mod tasks;
#[path = "e2e/tls.rs"]
mod tls;
#[path = "e2e/tool.rs"]
mod tool;
#[path = "e2e/traffic.rs"]
mod traffic;
#[path = "e2e/verbs.rs"]
mod verbs;
#[path = "e2e/watched.rs"]
mod watched;
