//! Messages pass unchanged, except for their id and progress token.

use proptest::prelude::*;

use crate::harness::{Agent, Harness};
use crate::script::{Kind, Line, settle};

/// White space that JSON allows, mostly none.
fn blank() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"]
}

fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-zA-Z0-9 _/.-]{0,6}",
        Just("\u{1f511}é漢".to_owned()),
        Just(r#"\"\\\/\b\f\n\r\t"#.to_owned()),
        Just(r"\u0061\u00e9\ud83d\udd11".to_owned()),
        Just("\u{2028}".to_owned()),
    ];
    proptest::collection::vec(part, 0..3).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

/// Numbers that a reader into types would spell anew.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u32>().prop_map(|number| format!("{number}.500")),
        any::<u8>().prop_map(|number| format!("-{number}E+02")),
        Just("0.10".to_owned()),
        Just("-0".to_owned()),
        Just("1e400".to_owned()),
        Just("123456789012345678901234567890.0".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        string(),
        number(),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("{}".to_owned()),
        Just("[ ]".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let item = (blank(), inner.clone(), blank()).prop_map(|(a, value, b)| a + &value + &b);
        let list = proptest::collection::vec(item, 1..4)
            .prop_map(|items| format!("[{}]", items.join(",")));
        prop_oneof![list, object("k", inner)]
    })
}

/// An object with members that have never been received of, each key once.
fn object(
    prefix: &'static str,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    members(prefix, value).prop_map(|members| format!("{{{}}}", members.join(",")))
}

fn members(
    prefix: &'static str,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = Vec<String>> {
    let member = (blank(), blank(), blank(), value, blank());
    proptest::collection::vec(member, 0..4).prop_map(move |members| {
        let spell =
            |(index, (a, b, c, value, d)): (usize, (String, String, String, String, String))| {
                format!(r#"{a}"{prefix}\u00e9{index}"{b}:{c}{value}{d}"#)
            };
        members.into_iter().enumerate().map(spell).collect()
    })
}

/// A message in two pieces or more: what stands between them (an id, a token) is not its own.
#[derive(Debug, Clone)]
struct Template {
    text: String,
}

const ID: &str = "\u{1}ID\u{1}";
const TOKEN: &str = "\u{1}TOKEN\u{1}";

impl Template {
    fn with(&self, id: &str, token: &str) -> String {
        self.text.replace(ID, id).replace(TOKEN, token)
    }
}

/// A message with these members, any unknown ones, in any order.
fn message(known: Vec<String>) -> impl Strategy<Value = Template> {
    (members("x", value()), blank(), Just(known)).prop_flat_map(|(unknown, gap, known)| {
        let all: Vec<String> = known.into_iter().chain(unknown).collect();
        Just(all).prop_shuffle().prop_map(move |all| Template {
            text: format!("{{{gap}\"jsonrpc\":{gap}\"2.0\",{}}}", all.join(",")),
        })
    })
}

/// `params` with unknown members and a progress token among other `_meta`.
fn params() -> impl Strategy<Value = String> {
    (members("p", value()), members("m", value()), blank()).prop_flat_map(
        |(params, mut meta, gap)| {
            meta.push(format!("{gap}\"progressToken\"{gap}:{gap}{TOKEN}{gap}"));
            let meta = Just(meta).prop_shuffle().prop_map(|meta| meta.join(","));
            meta.prop_flat_map(move |meta| {
                let mut all = params.clone();
                all.push(format!("\"_meta\":{{{meta}}}"));
                Just(all).prop_shuffle().prop_map(|all| format!("{{{}}}", all.join(",")))
            })
        },
    )
}

fn request(method: &'static str) -> impl Strategy<Value = Template> {
    params().prop_flat_map(move |params| {
        message(vec![
            format!("\"id\":{ID}"),
            format!("\"method\":\"{method}\""),
            format!("\"params\":{params}"),
        ])
    })
}

fn answer() -> impl Strategy<Value = Template> {
    (value(), any::<bool>()).prop_flat_map(|(value, ok)| {
        let key = if ok { "result" } else { "error" };
        message(vec![format!("\"id\" : {ID}"), format!("\"{key}\":{value}")])
    })
}

fn token() -> impl Strategy<Value = String> {
    prop_oneof![string(), number()]
}

struct Case {
    agent: Agent,
    line: Line,
    id: String,
    token: String,
}

impl Case {
    /// A request to the server and its answer, a question to the agent and its answer.
    async fn run(&mut self, out: &Template, back: &Template, ask: &Template, reply: &Template) {
        let mut pending = self.agent.ask(&out.with(&self.id, &self.token));
        let sent = self.line.next().await;
        let number = sent.id().to_owned();
        assert_eq!(sent.body, out.with(&number, &number));

        sent.say(&ask.with(&self.id, &self.token));
        let question = pending.message().await;
        let ours = toolgate_json::peek(&question, &["id"]).unwrap().unwrap();
        assert_eq!(question, ask.with(ours, ours));
        self.agent.tell(&reply.with(ours, "")).await;
        assert_eq!(self.line.next().await.body, reply.with(&self.id, ""));

        sent.say(&back.with(&number, ""));
        assert_eq!(pending.message().await, back.with(&self.id, ""));
        settle().await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_but_id_and_token_passes_byte_for_byte(
        id in token(),
        token in token(),
        out in request("tools/call"),
        back in answer(),
        ask in request("sampling/createMessage"),
        reply in answer(),
        child in any::<bool>(),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let (harness, mut peer) = Harness::one(if child { Kind::Child } else { Kind::Http });
            let (agent, line) = harness.agent_on(&mut peer).await;
            Case { agent, line, id, token }.run(&out, &back, &ask, &reply).await;
        });
    }

    #[test]
    fn notifications_pass_byte_for_byte(
        note in params().prop_flat_map(|params| message(vec![
            "\"method\":\"notifications/x\\u002fy\"".to_owned(),
            format!("\"params\":{params}"),
        ])),
    ) {
        let note = note.with("", "1.0");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let (harness, mut peer) = Harness::one(Kind::Child);
            let (agent, mut line) = harness.agent_on(&mut peer).await;
            agent.tell(&note).await;
            assert_eq!(line.next().await.body, note);
            let mut general = agent.listen();
            line.say(&note);
            assert_eq!(general.message().await, note);
        });
    }
}
