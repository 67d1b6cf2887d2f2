//! The behaviour of each server on the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::live::live;
use super::{FALSE_ANSWER, FaultyServer, endless};

/// Everything that was sent until the exit.
struct Transcript {
    code: u8,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Transcript {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// The lines that are messages.
    fn messages(&self) -> Vec<Value> {
        let text = self.text();
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values.filter(|value| value.get("jsonrpc").is_some()).collect()
    }

    /// The answers to the request with this id.
    fn answers(&self, id: u64) -> Vec<Value> {
        let right = |message: &Value| message["id"] == id && message.get("method").is_none();
        self.messages().into_iter().filter(right).collect()
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Two calls after a handshake and a list.
fn conversation() -> String {
    let mut all = request(1, "initialize", &json!({"protocolVersion": "2025-11-25"}));
    all += "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    all += &request(2, "tools/list", &json!({}));
    all += &request(13, "tools/call", &json!({"name": "echo", "arguments": {"text": "one"}}));
    all += &request(14, "tools/call", &json!({"name": "count"}));
    all
}

fn run(server: FaultyServer, amount: u64, input: &str) -> Transcript {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let code = live(server, amount, input.as_bytes(), &mut output, &mut errors).unwrap();
    Transcript { code, output, errors }
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// Amounts that make a test short.
fn small(server: FaultyServer) -> u64 {
    match server {
        FaultyServer::Slow | FaultyServer::Dripping => 0,
        FaultyServer::StderrFlood => 12_345,
        FaultyServer::LongLine => 700_000,
        FaultyServer::ListChangedStorm => 3,
        FaultyServer::ManyTools => 1000,
        _ => 7,
    }
}

#[test]
fn every_faulty_server_still_answers() {
    let never = [
        FaultyServer::Silent,
        FaultyServer::CrashAtStart,
        FaultyServer::CrashMidCall,
        FaultyServer::CrashHalfAnswer,
        FaultyServer::EndlessSse,
        // It has no handshake.
        FaultyServer::ShufflingNewer,
    ];
    for server in FaultyServer::all().iter().filter(|server| !never.contains(server)) {
        let transcript = run(*server, small(*server), &conversation());
        assert_eq!(transcript.code, 0, "{server:?}");
        let first = |id| {
            transcript
                .answers(id)
                .into_iter()
                .find(|answer| !answer.to_string().contains(FALSE_ANSWER))
        };
        let welcome = first(1).unwrap();
        assert_eq!(welcome["result"]["protocolVersion"], "2025-11-25", "{server:?}");
        assert_eq!(welcome["result"]["serverInfo"]["name"], server.name());
        let list = first(2).unwrap();
        let tools = list["result"]["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == "echo"), "{server:?}");
        assert_eq!(text_of(&first(13).unwrap()), "one", "{server:?}");
        assert_eq!(text_of(&first(14).unwrap()), "2", "{server:?}");
    }
}

#[test]
fn a_newer_one_is_discovered() {
    let input = conversation() + &request(15, "server/discover", &json!({}));
    let transcript = run(FaultyServer::ShufflingNewer, 1, &input);
    let answer = |id| transcript.answers(id).remove(0);
    assert_eq!(answer(1)["error"]["code"], -32601);
    assert_eq!(answer(15)["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(text_of(&answer(13)), "one");
    assert_eq!(answer(13)["result"]["resultType"], "complete");
}

#[test]
fn crashes() {
    let transcript = run(FaultyServer::CrashAtStart, 0, &conversation());
    assert_eq!((transcript.code, transcript.text().as_str()), (3, ""));
    assert_eq!(transcript.errors, b"crashing at start\n");
    for server in [FaultyServer::CrashMidCall, FaultyServer::CrashHalfAnswer] {
        let transcript = run(server, 0, &conversation());
        assert_eq!((transcript.code, transcript.messages().len()), (9, 2), "{server:?}");
        let begun = transcript.text().lines().nth(2).map(str::to_owned);
        match server {
            FaultyServer::CrashMidCall => assert_eq!(begun, None),
            _ => assert!(begun.unwrap().starts_with("{\"")),
        }
    }
    assert_eq!(run(FaultyServer::Silent, 0, &conversation()).text(), "");
}

#[test]
fn lies() {
    let transcript = run(FaultyServer::WrongIds, 0, &conversation());
    let used = [1, 2, 13, 14].map(Value::from);
    let strange =
        transcript.messages().into_iter().filter(|message| !used.contains(&message["id"]));
    assert_eq!(strange.count(), 14);
    assert!(transcript.messages().iter().any(|message| message["id"] == "1"));

    let transcript = run(FaultyServer::Twice, 0, &conversation());
    for id in [1, 2, 13, 14] {
        let answers = transcript.answers(id);
        assert_eq!((answers.len(), text_of(&answers[1])), (2, FALSE_ANSWER), "{id}");
    }

    let transcript = run(FaultyServer::OtherIds, 0, &conversation());
    for id in [10, 11, 12, 15, 16, 17] {
        assert!(
            transcript.answers(id).iter().all(|answer| text_of(answer) == FALSE_ANSWER),
            "{id}"
        );
        assert!(!transcript.answers(id).is_empty(), "{id}");
    }
    let about_the_second: Vec<String> =
        transcript.answers(14).iter().map(|answer| text_of(answer).to_owned()).collect();
    assert_eq!(about_the_second, [FALSE_ANSWER, "2"], "the lie comes first");
}

#[test]
fn too_much() {
    assert_eq!(run(FaultyServer::StderrFlood, 12_345, &conversation()).errors.len(), 12_345);
    let transcript = run(FaultyServer::LongLine, 700_000, &conversation());
    assert!(transcript.text().lines().nth(2).unwrap().len() > 700_000);
    let transcript = run(FaultyServer::ListChangedStorm, 3, &conversation());
    let storm = transcript.messages().into_iter();
    let storm = storm.filter(|message| message["method"] == "notifications/tools/list_changed");
    assert!(storm.count() >= 15);
    let transcript = run(FaultyServer::ManyTools, 1000, &conversation());
    assert_eq!(transcript.answers(2)[0]["result"]["tools"].as_array().unwrap().len(), 1000);
    let transcript = run(FaultyServer::Garbage, 0, &conversation());
    assert!(std::str::from_utf8(&transcript.output).is_err());
    assert!(transcript.text().lines().count() > 5 * 2 * 8);
}

#[test]
fn lists_that_never_stay() {
    let input = [conversation(), request(3, "tools/list", &json!({}))].concat();
    let transcript = run(FaultyServer::ChangingList, 0, &input);
    let names = |id| {
        let list = transcript.answers(id).remove(0);
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(2), ["echo", "count", "read-1"]);
    assert_eq!(names(3), ["read-2", "count", "echo"]);
}

#[test]
fn concurrent_answers_are_shuffled() {
    let call = |id| {
        request(id, "tools/call", &json!({"name": "echo", "arguments": {"text": format!("{id}")}}))
    };
    let input: String = (0..50).map(call).collect();
    let transcript = run(FaultyServer::Shuffling, 1, &input);
    let ids: Vec<u64> = transcript.messages().iter().map(|m| m["id"].as_u64().unwrap()).collect();
    assert!(!ids.is_sorted() && ids.len() == 50, "{ids:?}");
    for message in transcript.messages() {
        assert_eq!(text_of(&message), message["id"].to_string());
    }
}

#[test]
fn an_endless_stream_answers_and_continues() {
    let endless = endless::EndlessServer::start(Duration::ZERO).unwrap();
    let address = endless.url().split('/').nth(2).unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let body = request(5, "tools/call", &json!({"name": "echo", "arguments": {"text": "hi"}}));
    write!(stream, "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "HTTP/1.1 200 OK");
    let answer = lines.find(|line| line.contains("\"result\"")).unwrap();
    assert!(answer.contains("hi") && answer.contains("\"id\":5"), "{answer}");
    assert_eq!(lines.filter(|line| line.starts_with("data:")).take(1000).count(), 1000);
    drop(endless);
    let mut rest = Vec::new();
    // It may be truncated.
    drop(stream.read_to_end(&mut rest));
    assert!(TcpStream::connect(&address).is_err());
}
