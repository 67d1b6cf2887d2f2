//! The alert rules under Prometheus itself: `promtool` checks and tests them, and a Prometheus that
//! scrapes a gateway evaluates them.
//!
//! No part of the tests, because it needs a Debian package: `e2e/monitoring.rs` compares the rules and
//! the dashboard with the metrics of a running gateway.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::gate::{debug_binary, first_line};
use crate::process::{Group, output, run as run_command};
use crate::report::say;
use crate::{root, target};

/// How long the first scrape and the first evaluation may take.
const LIMIT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(200);

pub(crate) fn run() -> Result<()> {
    let rules = root().join("deploy/prometheus/toolgate.rules.yml");
    run_command(Command::new(program("promtool")?).args(["check", "rules"]).arg(&rules))?;
    let tests = rules.with_file_name("toolgate.test.yml");
    run_command(Command::new(program("promtool")?).args(["test", "rules"]).arg(tests))?;
    let folder = target().join("monitoring");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let (_gateway, admin) = gateway(&folder)?;
    let (_prometheus, address) = prometheus(&folder, &admin, &rules)?;
    let scraped = until(|| {
        let targets = get(&address, "/api/v1/targets")?;
        let health = targets.pointer("/data/activeTargets/0/health").and_then(Value::as_str);
        Ok((health == Some("up")).then_some(()))
    });
    scraped.context("Prometheus did not scrape the gateway")?;
    let evaluated = until(|| {
        let groups = get(&address, "/api/v1/rules")?;
        let rules = groups.pointer("/data/groups/0/rules").and_then(Value::as_array).cloned();
        let rules = rules.unwrap_or_default();
        let health = |rule: &Value| rule.get("health").and_then(Value::as_str).map(str::to_owned);
        ensure!(rules.iter().all(|rule| health(rule).as_deref() != Some("err")), "{groups}");
        Ok(rules.iter().all(|rule| health(rule).as_deref() == Some("ok")).then_some(rules.len()))
    });
    let count = evaluated.context("Prometheus did not evaluate the rules")?;
    say(&format!("Prometheus scrapes the gateway and evaluates {count} rules"));
    Ok(())
}

/// A program of the Debian package `prometheus`, downloaded without installing it if it is missing.
fn program(name: &str) -> Result<PathBuf> {
    if output(Command::new(name).arg("--version")).is_ok() {
        return Ok(name.into());
    }
    let folder = target().join("peers/prometheus");
    let program = folder.join("usr/bin").join(name);
    if !program.exists() {
        fs::create_dir_all(&folder)?;
        run_command(Command::new("apt-get").args(["download", "prometheus"]).current_dir(&folder))?;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "deb") {
                run_command(Command::new("dpkg-deb").arg("-x").arg(path).arg(&folder))?;
            }
        }
    }
    ensure!(program.exists(), "`{}` does not exist", program.display());
    Ok(program)
}

/// A gateway, and the address of its admin listener.
fn gateway(folder: &Path) -> Result<(Group, String)> {
    let config = folder.join("toolgate.yaml");
    let listen = "{ mcp: 127.0.0.1:0, sessions: 127.0.0.1:0, admin: 127.0.0.1:0 }";
    let servers = "{ a: { command: 'true' } }";
    fs::write(
        &config,
        format!("version: 1\ndata: ./data\nlisten: {listen}\nservers: {servers}\n"),
    )?;
    let mut command = Command::new(debug_binary());
    command.args(["serve", "--ready-json", "--config"]).arg(config);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(File::create(folder.join("toolgate.log"))?);
    let mut group = Group::start("toolgate", &mut command)?;
    let ready: Value = serde_json::from_str(&first_line(&mut group)?)?;
    let admin = ready.get("admin").and_then(Value::as_str).context("no admin listener")?;
    Ok((group, admin.trim_start_matches("http://").to_owned()))
}

/// A Prometheus that scrapes the gateway every second, and its address.
fn prometheus(folder: &Path, admin: &str, rules: &Path) -> Result<(Group, String)> {
    let config = folder.join("prometheus.yml");
    let text = format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: ['{}']\n\
         scrape_configs: [{{ job_name: toolgate, static_configs: [{{ targets: ['{admin}'] }}] }}]\n",
        rules.display()
    );
    fs::write(&config, text)?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let mut command = Command::new(program("prometheus")?);
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()));
    command.arg(format!("--web.listen-address={address}"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(folder.join("prometheus.log"))?);
    Ok((Group::start("prometheus", &mut command)?, address))
}

/// Looks until there is something.
fn until<T>(look: impl Fn() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + LIMIT;
    loop {
        match look() {
            Ok(Some(found)) => return Ok(found),
            Err(error) if Instant::now() > end => return Err(error),
            Ok(None) if Instant::now() > end => bail!("nothing within {} s", LIMIT.as_secs()),
            _ => std::thread::sleep(POLL),
        }
    }
}

fn get(address: &str, path: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    Ok(serde_json::from_str(body)?)
}
