//! Children, as small shell scripts.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;
use toolgate_edge::child::{ChildConnector, ChildSpec, inheritable};
use toolgate_gateway::channel::{Channel, Connector, SendError};

use crate::recorder::{Received, Record, message, recorder, soon};

fn script(text: &str) -> ChildSpec {
    ChildSpec { args: vec!["-c".to_owned(), text.to_owned()], ..ChildSpec::new("demo", "sh") }
}

fn surroundings() -> Vec<(String, String)> {
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("SECRET_TOKEN", "x")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

async fn connect(spec: ChildSpec) -> Result<(Arc<dyn Channel>, Record, TaskTracker), SendError> {
    let tracker = TaskTracker::new();
    let (inbox, record) = recorder();
    let connector =
        ChildConnector::new(spec, surroundings(), Box::new(|| "i1".to_owned()), tracker.clone());
    Ok((connector.connect(inbox).await?, record, tracker))
}

async fn start(text: &str) -> (Arc<dyn Channel>, Record, TaskTracker) {
    connect(script(text)).await.unwrap()
}

async fn say(channel: &Arc<dyn Channel>, body: &str) -> Result<(), SendError> {
    channel.send(message(body), recorder().0).await
}

fn not_sent(result: Result<(), SendError>) -> String {
    match result {
        Err(SendError::NotSent(why)) => why,
        other => panic!("expected NotSent, got {other:?}"),
    }
}

/// A process that prints `{"pid":N}` and the number that it printed.
async fn pid(record: &mut Record) -> i32 {
    let text = record.message().await;
    text.trim_start_matches("{\"pid\":").trim_end_matches('}').parse().unwrap()
}

/// A pipe that every process of a script holds open, so that its end is the end of them all.
struct Witness {
    folder: tempfile::TempDir,
}

impl Witness {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let witness = Self { folder };
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, witness.path(), kind, mode, 0).unwrap();
        witness
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("witness")
    }

    /// A script that holds the pipe before it does anything else.
    fn watches(&self, text: &str) -> ChildSpec {
        script(&format!("exec 3<>'{}'; {text}", self.path().display()))
    }

    /// The reading end, once a process holds the other.
    fn open(&self) -> File {
        File::open(self.path()).unwrap()
    }
}

/// Waits until nobody holds the other end of a [`Witness`].
fn all_dead(mut witness: File) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(witness.read(&mut [0]).unwrap()).unwrap());
    assert_eq!(receiver.recv_timeout(Duration::from_mins(1)), Ok(0));
}

fn reaped(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn lines_go_there_and_back() {
    let (channel, mut record, _) = start("exec cat").await;
    for body in [r#"{"a":1}"#, r#"{"text":"Привет, мир"}"#, r#"[{"b":[]}]"#] {
        say(&channel, body).await.unwrap();
        assert_eq!(record.message().await, body);
    }
    // Whatever an agent's layout, one message is one line: no value can become a message.
    let laid_out =
        [("{\"a\":[\n{}\n]}", r#"{"a":[{}]}"#), ("{}\n", "{}"), ("{\"a\":\r{}}", r#"{"a":{}}"#)];
    for (body, line) in laid_out {
        say(&channel, body).await.unwrap();
        assert_eq!(record.message().await, line);
    }
    soon(channel.listen()).await;
    soon(channel.close()).await;
    assert_eq!(record.closed().await, "closed by the gateway");
    assert!(not_sent(say(&channel, "{}").await).contains("ended"));
    drop(channel);
    assert_eq!(record.next().await, None, "nothing comes after the end");
}

#[tokio::test]
async fn what_waits_is_written_before_stdin_closes() {
    let (channel, mut record, _) = start("exec cat").await;
    let bodies: Vec<_> = (0..200).map(|n| format!("{{\"n\":{n}}}")).collect();
    for body in &bodies {
        say(&channel, body).await.unwrap();
    }
    soon(channel.close()).await;
    for body in &bodies {
        assert_eq!(&record.message().await, body);
    }
    record.closed().await;
}

#[tokio::test]
async fn lines_that_are_no_messages_are_skipped() {
    let (_channel, mut record, _) = start(
        r#"echo hello; echo; echo '  {"a":1}'; echo '"text"'; printf '[1]\r\n'; printf '{"last":1}'"#,
    )
    .await;
    for expected in ["  {\"a\":1}", "[1]", "{\"last\":1}"] {
        assert_eq!(record.message().await, expected);
    }
    assert_eq!(record.closed().await, "the process exited with code 0");
}

#[tokio::test]
async fn a_message_may_be_large_but_not_larger_than_the_limit() {
    let text = r#"printf '{"x":"'; head -c 700000 /dev/zero | tr '\0' a; echo '"}'; exec cat"#;
    let (_channel, mut record, _) = start(text).await;
    assert_eq!(record.message().await.len(), 700_008);

    let (channel, mut record, _) =
        connect(ChildSpec { max_line: 1000, ..script(&format!("echo '{{}}'; {text}")) })
            .await
            .unwrap();
    assert_eq!(record.message().await, "{}");
    assert!(record.closed().await.contains("more than 1000 bytes"));
    not_sent(say(&channel, "{}").await);
}

#[tokio::test]
async fn an_exit_is_reported_once_without_stderr() {
    let cases = [
        (
            "echo first >&2; echo oops >&2; exit 3",
            "exited with code 3; its stderr is in the log of toolgate",
        ),
        ("exit 0", "the process exited with code 0"),
        ("kill -9 $$", "the process was ended by signal 9"),
        ("sleep 1000 & exit 7", "the process exited with code 7"),
        (
            "printf 'no line end' >&2; exit 1",
            "exited with code 1; its stderr is in the log of toolgate",
        ),
    ];
    for (text, expected) in cases {
        let (channel, mut record, tracker) = start(text).await;
        let why = record.closed().await;
        assert!(why.ends_with(expected), "{text}: {why}");
        not_sent(say(&channel, "{}").await);
        soon(channel.close()).await;
        tracker.close();
        soon(tracker.wait()).await;
        assert_eq!(record.now(), [], "{text}");
    }
}

#[tokio::test]
async fn the_whole_group_ends_and_the_leader_is_reaped() {
    // As process 1 of a container the gateway inherits orphans, so this process does too.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    for asked in [true, false] {
        // The leader exits after a line or at the end of its input; what it leaves behind does not.
        let witness = Witness::new();
        let text = r#"(trap '' TERM; sleep 1000) & echo "{\"pid\":$$}"; read line"#;
        let (channel, mut record, _) = connect(witness.watches(text)).await.unwrap();
        let leader = pid(&mut record).await;
        let witness = witness.open();
        if asked {
            soon(channel.close()).await;
        } else {
            say(&channel, "{}").await.unwrap();
        }
        record.closed().await;
        assert!(reaped(leader));
        all_dead(witness);
    }
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed() {
    let (channel, mut record, _) =
        start(r#"trap '' TERM; echo "{\"pid\":$$}"; while :; do sleep 1000; done"#).await;
    let leader = pid(&mut record).await;
    soon(channel.close()).await;
    assert!(reaped(leader));
    assert_eq!(record.closed().await, "closed by the gateway");
}

#[tokio::test]
async fn dropping_the_channel_ends_the_child() {
    let (channel, mut record, tracker) = start(r#"echo "{\"pid\":$$}"; exec sleep 1000"#).await;
    let leader = pid(&mut record).await;
    drop(channel);
    tracker.close();
    soon(tracker.wait()).await;
    assert!(reaped(leader));
    assert_eq!(record.now(), [Received::Closed("closed by the gateway".to_owned())]);
}

#[test]
fn a_runtime_that_is_torn_down_takes_its_children_along() {
    let witness = Witness::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (channel, witness) = runtime.block_on(async {
        let text = r"trap '' TERM; sleep 1000 & echo '{}'; wait";
        let (channel, mut record, _) = connect(witness.watches(text)).await.unwrap();
        record.message().await;
        (channel, witness.open())
    });
    drop(runtime);
    drop(channel);
    all_dead(witness);
}

#[tokio::test]
async fn a_child_that_closes_its_output_is_ended() {
    let (_channel, mut record, _) =
        start(r#"echo "{\"pid\":$$}"; exec >&-; trap 'exit 0' TERM; sleep 1000 & wait"#).await;
    let leader = pid(&mut record).await;
    assert_eq!(record.closed().await, "the process closed its output but did not exit");
    assert!(reaped(leader));
}

#[tokio::test]
async fn the_environment_is_cleared() {
    let spec = ChildSpec {
        env: vec![
            ("LISTED".to_owned(), "yes".to_owned()),
            ("LC_ALL".to_owned(), "C.UTF-8".to_owned()),
        ],
        ..script(r#"tr '\0' '\n' < /proc/$$/environ | while read -r l; do echo "{$l}"; done"#)
    };
    let (_channel, mut record, _) = connect(spec).await.unwrap();
    let mut seen = Vec::new();
    while let Some(Received::Message(line)) = record.next().await {
        seen.push(line);
    }
    seen.sort();
    assert_eq!(seen, ["{LC_ALL=C.UTF-8}", "{LISTED=yes}", "{PATH=/usr/local/bin:/usr/bin:/bin}"]);
}

#[test]
fn only_harmless_variables_are_inherited() {
    for name in ["PATH", "HOME", "LANG", "LC_TIME", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "TERM"] {
        assert!(inheritable(name), "{name}");
    }
    for name in
        ["AWS_SECRET_ACCESS_KEY", "path", "LD_PRELOAD", "PYTHONPATH", "", "LC", "TOOLGATE_DATA"]
    {
        assert!(!inheritable(name), "{name}");
    }
}

#[tokio::test]
async fn a_failed_start_states_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.sh");
    File::create(&plain).unwrap();
    let plain = plain.to_str().unwrap().to_owned();
    let cases = [
        (
            ChildSpec::new("demo", "no-such-program"),
            "`no-such-program` in PATH (`/usr/local/bin:/usr/bin:/bin`); install it",
        ),
        (ChildSpec::new("demo", "./no/such/file"), "there is no file `./no/such/file`"),
        (ChildSpec::new("demo", plain), "permission denied"),
        (
            ChildSpec { cwd: Some("/no/such/folder".into()), ..script("true") },
            "the folder `/no/such/folder` does not exist; create it or correct `cwd`",
        ),
    ];
    for (spec, expected) in cases {
        let why = not_sent(connect(spec).await.map(drop));
        assert!(why.starts_with("cannot start `demo`: ") && why.contains(expected), "{why}");
    }
}

#[tokio::test]
async fn the_working_folder_is_the_childs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let spec = ChildSpec { cwd: Some(folder.clone()), ..script(r#"echo "{$(pwd -P)}""#) };
    let (_channel, mut record, _) = connect(spec).await.unwrap();
    assert_eq!(record.message().await, format!("{{{}}}", folder.display()));
}

#[tokio::test]
async fn placeholders_give_each_child_its_own_values_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut spec = script(r#"echo "{$0 $DIR $(pwd -P)}""#);
    spec.args.push("--db={grant}".to_owned());
    spec.env.push(("DIR".to_owned(), "d/{grant}/{instance}".to_owned()));
    spec.cwd = Some(folder.join("{grant}/{instance}"));
    let ids = std::sync::atomic::AtomicUsize::new(1);
    let ids = move || format!("i{}", ids.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let connector = ChildConnector::new(spec, surroundings(), Box::new(ids), TaskTracker::new());
    for instance in ["i1", "i2"] {
        let (inbox, mut record) = recorder();
        let _channel = connector.connect_for(inbox, "laptop").await.unwrap();
        let expected =
            format!("{{--db=laptop d/laptop/{instance} {}/laptop/{instance}}}", folder.display());
        assert_eq!(record.message().await, expected);
    }
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_nor_fills_memory() {
    let (_channel, mut record, _) = start(
        "yes | head -c 100000000 >&2; head -c 100000000 /dev/zero >&2; echo '{\"done\":1}'; exit 4",
    )
    .await;
    assert_eq!(record.message().await, "{\"done\":1}");
    assert!(record.closed().await.starts_with("the process exited with code 4"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 150_000, "{peak} kB");
}

#[tokio::test]
async fn a_child_that_does_not_read_gets_no_more_than_the_queue() {
    let spec = ChildSpec { queue: 3, ..script("exec sleep 1000") };
    let (channel, _record, _) = connect(spec).await.unwrap();
    let body = format!("{{\"x\":\"{}\"}}", "a".repeat(1 << 20));
    let mut taken = 0;
    let why = loop {
        match say(&channel, &body).await {
            Ok(()) => taken += 1,
            refused => break not_sent(refused),
        }
        // Lets the writer take what it can.
        tokio::task::yield_now().await;
        assert!(taken < 10);
    };
    assert!(why.contains("`demo` does not read its input: 3 messages"), "{why}");
    assert!(taken >= 3);
}
