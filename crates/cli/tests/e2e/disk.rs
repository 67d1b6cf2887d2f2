//! A data folder that cannot be written: at the start, and all of a sudden.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::agent::Agent;
use crate::gate::{Gate, Home, eventually};
use crate::upstream::Upstream;

/// Each of these cannot be a data folder, for root neither.
#[test]
fn a_data_folder_that_cannot_be_written_ends_the_start_with_the_reason() {
    let home = Home::new();
    fs::write(home.path("a-file"), "not a folder").unwrap();
    fs::create_dir_all(home.path("taken/toolgate.db")).unwrap();
    fs::create_dir_all(home.path("locked/serve.lock")).unwrap();
    for (folder, names) in [
        (home.path("a-file"), "a-file"),
        (home.path("a-file/below"), "a-file/below"),
        (PathBuf::from("/proc/toolgate"), "/proc/toolgate"),
        (home.path("taken"), "toolgate.db"),
        (home.path("locked"), "serve.lock"),
    ] {
        home.configure(&format!("version: 1\n{}\n", crate::gate::LISTEN));
        let mut command = home.command(&["serve", "--ready-json", "--data"]);
        let output = command.arg(&folder).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(2), &b""[..]),
            "{printed}"
        );
        let last = printed.lines().last().unwrap();
        assert!(last.starts_with("toolgate: ") && last.contains(names), "{names}: {printed}");
    }
}

/// The disk fills up under a running gateway: what cannot be recorded is not sent, the agent gets
/// an error, and calls work again once there is room.
#[test]
fn a_full_disk_stops_calls_and_nothing_else() {
    let Some(small) = SmallDisk::start() else { return };
    let ballast = small.inside.join("ballast");
    let fill = || {
        let mut file = fs::File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    };
    small.check(fill, "the disk is full", || fs::remove_file(&ballast).unwrap());
}

/// A gateway whose data folder is a small file system of its own, mounted only for it.
struct SmallDisk {
    gate: Gate,
    upstream: Upstream,
    /// The folder, as it is reached from here.
    inside: PathBuf,
}

impl SmallDisk {
    #[expect(clippy::print_stdout, reason = "skipped checks are printed")]
    fn start() -> Option<Self> {
        let home = Home::new();
        let data = home.path("data");
        fs::create_dir(&data).unwrap();
        let mount = format!("mount -t tmpfs -o size=3m,mode=700 none '{}'", data.display());
        let unshare = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--map-root-user", "sh", "-c", script]);
            command
        };
        if !unshare(&mount).output().is_ok_and(|output| output.status.success()) {
            println!("NOT TESTED: this user may not mount");
            return None;
        }
        let upstream = Upstream::start();
        home.configure(&format!(
            "version: 1\n{}\nservers:\n  web: {{ url: 'http://{}/mcp' }}\n",
            crate::gate::LISTEN,
            upstream.address
        ));
        let binary = env!("CARGO_BIN_EXE_toolgate");
        let serve = format!(
            "{mount} && cd '{}' && exec '{binary}' serve --ready-json --data '{}'",
            home.path("").display(),
            data.display()
        );
        let mut command = unshare(&serve);
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let gate =
            Gate::run(home, command).unwrap_or_else(|(status, log)| panic!("{status} {log}"));
        let inside = PathBuf::from(format!("/proc/{}/root{}", gate.pid(), data.display()));
        Some(Self { gate, upstream, inside })
    }

    /// Breaks the disk, checks that calls are refused with this text, and repairs it.
    fn check(&self, spoil: impl FnOnce(), words: &str, mend: impl FnOnce()) {
        let agent = Agent::open(&self.gate, "web");
        let code = || agent.call("t", &json!({}))["_meta"]["error_code"].clone();
        assert_eq!(code(), json!(null));
        spoil();
        let refused = eventually("calls are refused", || {
            let result = agent.call("t", &json!({}));
            (result["_meta"]["error_code"] == "not_audited").then_some(result)
        });
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("[NOT SENT] ") && text.contains(words), "{text}");
        let requests = || self.upstream.requests();
        let called = || requests().iter().filter(|body| body.contains("tools/call")).count();
        let before = called();
        for _ in 0..20 {
            assert_eq!(code(), json!("not_audited"));
        }
        assert_eq!(called(), before, "nothing was sent");
        assert!(agent.works(), "what needs no permit goes on");
        mend();
        assert_eq!(code(), json!(null), "all is well again, without a restart");
    }
}
