//! A reader of the documentation: a home with the files that pages name, a running gateway, and programs
//! that have dialled in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output};

use crate::gate::{Gate, Home, LISTEN, eventually};

/// The file of an existing installation, which pages only name.
const V8PROJECT: &str =
    "workPath: ./work\nmcp:\n  session_manager: { bind_address: 127.0.0.1:4000 }\n";

/// A reader with a running gateway.
pub(super) struct Walk {
    gate: Option<Gate>,
    /// Programs that have dialled in, to connect them again after a restart.
    programs: Vec<(Vec<String>, Child)>,
    /// The token that `grant create` printed.
    token: Option<String>,
    /// The page has its readers save a `toolgate.yaml`.
    has_config: bool,
}

impl Walk {
    pub(super) fn start() -> Self {
        let home = Home::new();
        for folder in ["var/lib", "var/lib/toolgate/backups", "backup", "elsewhere", "bin"] {
            fs::create_dir_all(home.path(folder)).unwrap();
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(home.path("var/lib/toolgate"), private).unwrap();
        let program = env!("CARGO_BIN_EXE_toolgate");
        let npx = home.path("bin/npx");
        fs::write(&npx, format!("#!/bin/sh\nexec {program} demo server safe\n")).unwrap();
        fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(home.path("first.yaml"), "version: '1'\ndefault: allow\n").unwrap();
        fs::write(home.path("v8project.yaml"), V8PROJECT).unwrap();
        fs::write(home.path(".mcp.json"), r#"{"mcpServers": {"a": {"command": "npx"}}}"#).unwrap();
        let server = format!("{{ command: {program}, args: [demo, server, safe] }}");
        let config = format!(
            "version: 1\n{}servers: {{ tracker: {server}, everything: {server} }}\n\
             policies: {{ readonly: {{ file: first.yaml }}, strict: {{ file: first.yaml }} }}\n",
            own(&home)
        );
        fs::write(home.path("world.yaml"), config).unwrap();
        let mut walk = Self { gate: None, programs: Vec::new(), token: None, has_config: false };
        walk.serve(home, &["serve".to_owned()]);
        let home = walk.home();
        let key = "audit.pub";
        fs::copy(home.path("var/lib/toolgate").join(key), home.path("elsewhere").join(key))
            .unwrap();
        walk
    }

    fn home(&self) -> &Home {
        &self.gate.as_ref().unwrap().home
    }

    fn serve(&mut self, home: Home, words: &[String]) {
        let mut command = self.command(&home, words);
        command.arg("--ready-json");
        let gate = Gate::run(home, command);
        self.gate = Some(gate.unwrap_or_else(|(_, log)| panic!("{words:?}\n{log}")));
    }

    /// Saves a file, with free ports if it is the configuration.
    pub(super) fn save(&mut self, file: &str, text: &str) {
        let home = self.home();
        let own = if file == "toolgate.yaml" { own(home) } else { String::new() };
        fs::write(home.path(file), format!("{text}{own}")).unwrap();
        self.has_config |= file == "toolgate.yaml";
    }

    pub(super) fn run(&mut self, words: &[String]) -> Output {
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["serve", ..] if !words.iter().any(|word| word == "--dry-run") => self.restart(words),
            ["demo", "onec", ..] => self.dial_in(words.to_owned()),
            _ => {}
        }
        if ["serve", "demo"].contains(&words[0].as_str()) && !words.contains(&"--dry-run".into()) {
            // It runs by now.
            return self.command(self.home(), &["version".to_owned()]).output().unwrap();
        }
        let output = self.command(self.home(), words).output().unwrap();
        if words.starts_with(&["grant".to_owned(), "create".to_owned()]) {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let token = text.split_whitespace().find(|word| word.starts_with("tg_"));
            self.token = token.map(str::to_owned).or(self.token.take());
        }
        output
    }

    fn restart(&mut self, words: &[String]) {
        let mut gate = self.gate.take().unwrap();
        assert_eq!(gate.stop().0, Some(0));
        self.serve(gate.into_home(), words);
        for (words, mut child) in std::mem::take(&mut self.programs) {
            drop(child.kill());
            child.wait().unwrap();
            self.dial_in(words);
        }
    }

    /// Starts a program and waits until it is registered.
    fn dial_in(&mut self, words: Vec<String>) {
        let mut command = self.command(self.home(), &words);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let child = command.spawn().unwrap();
        let uid = words.iter().skip_while(|word| *word != "--uid").nth(1).unwrap();
        let list = ["session", "list", "-o", "json"].map(str::to_owned);
        eventually(&format!("`{uid}` is connected"), || {
            let output = self.command(self.home(), &list).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains(uid.as_str()).then_some(())
        });
        self.programs.push((words, child));
    }

    /// A command as the page shows it, in the surroundings of this reader.
    fn command(&self, home: &Home, words: &[String]) -> Command {
        let words: Vec<String> = words.iter().map(|word| replaced(home, word)).collect();
        let mut command = home.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", home.path("bin").display()));
        command.env("DESK_TOKEN", "5".repeat(64));
        if !self.has_config {
            command.env("TOOLGATE_CONFIG", home.path("world.yaml"));
        }
        command.envs(self.token.as_ref().map(|token| ("TOOLGATE_TOKEN", token)));
        command
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        for (_, child) in &mut self.programs {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Free ports, and a data folder that pages know by its path on a server.
fn own(home: &Home) -> String {
    format!("{LISTEN}\ndata: {}\n", home.path("var/lib/toolgate").display())
}

fn replaced(home: &Home, word: &str) -> String {
    match word.strip_prefix('/') {
        Some(path) => home.path(path).display().to_string(),
        // A date that has passed is refused.
        None => word.replace("2027-01-01", "2999-01-01"),
    }
}

pub(super) fn printed(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
