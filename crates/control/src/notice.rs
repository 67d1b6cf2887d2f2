//! Notices about pending approvals: the bodies that the webhook posts.
//!
//! Invariant: text of agents and servers is escaped for the markup of the chat, and hidden characters
//! are drawn, so that a notice shows what it says and notifies no further people.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolgate_config::NoticeFormat;
use toolgate_policy::{draw, drawn_arguments};
use toolgate_store::StoredApproval;

/// Most characters of the arguments in a notice; the page shows all of them.
const SHOWN: usize = 1_500;

/// The body of the notice about an approval; `page` is where people answer.
pub fn body(
    approval: &StoredApproval,
    page: &str,
    format: NoticeFormat,
    chat: Option<&str>,
) -> String {
    let body = match format {
        NoticeFormat::Json => return full(approval, page),
        NoticeFormat::Slack => json!({ "text": text(approval, page, &SLACK) }),
        NoticeFormat::Mattermost => json!({ "text": text(approval, page, &MATTERMOST) }),
        NoticeFormat::Telegram => json!({
            "chat_id": chat.unwrap_or_default(),
            "text": text(approval, page, &TELEGRAM),
            "parse_mode": "HTML",
            "disable_web_page_preview": true,
        }),
    };
    body.to_string()
}

/// Everything, for programs.
#[derive(Serialize)]
struct Full<'a> {
    event: &'static str,
    id: &'a str,
    state: &'static str,
    grant: &'a str,
    identity: Option<&'a str>,
    server: &'a str,
    session_id: Option<&'a str>,
    tool: &'a str,
    /// As they were hashed: numbers keep their spelling.
    arguments: Option<&'a RawValue>,
    shown: Option<String>,
    digest: String,
    class: &'a str,
    rule: &'a str,
    asked: String,
    people: u32,
    note: Option<&'a str>,
    created: String,
    expires: String,
    url: &'a str,
}

fn full(approval: &StoredApproval, page: &str) -> String {
    let call = &approval.call;
    let arguments = approval.arguments.as_deref();
    let full = Full {
        event: "approval.pending",
        id: &approval.id,
        state: approval.state.as_str(),
        grant: &call.grant,
        identity: call.identity.as_deref(),
        server: &call.server,
        session_id: call.session_id.as_deref(),
        tool: &call.tool,
        arguments: arguments.and_then(|text| serde_json::from_str(text).ok()),
        shown: arguments.map(shown),
        digest: call.digest.to_string(),
        class: &call.class,
        rule: &call.rule,
        asked: approval.question.asked(),
        people: approval.question.people,
        note: approval.question.note.as_deref(),
        created: approval.created.to_string(),
        expires: approval.expires.to_string(),
        url: page,
    };
    serde_json::to_string(&full).unwrap_or_default()
}

/// The markup of a chat.
struct Markup {
    escape: fn(&str) -> String,
    /// What begins and ends bold text.
    bold: (&'static str, &'static str),
    code: fn(&str) -> String,
    link: fn(&str) -> String,
}

const SLACK: Markup = Markup {
    escape: |text| slack_angles(&without_marks(text)),
    bold: ("*", "*"),
    code: |text| format!("```{}```", slack_angles(&text.replace('`', "\u{2cb}"))),
    link: |page| format!("<{page}|Open the approval>"),
};

const MATTERMOST: Markup = Markup {
    escape: backslashes,
    bold: ("**", "**"),
    code: |text| format!("\n```\n{}\n```\n", text.replace('`', "\u{2cb}")),
    link: |page| format!("[Open the approval]({page})"),
};

const TELEGRAM: Markup = Markup {
    escape: angles,
    bold: ("<b>", "</b>"),
    code: |text| format!("<pre>{}</pre>", angles(text)),
    link: |page| format!("<a href=\"{}\">Open the approval</a>", angles(page)),
};

fn text(approval: &StoredApproval, page: &str, markup: &Markup) -> String {
    let call = &approval.call;
    // A line break in a name would begin a line that seems to be toolgate's.
    let say = |text: &str| (markup.escape)(&draw(text).replace(['\n', '\r'], " "));
    let (begin, end) = markup.bold;
    let mut out = format!(
        "{begin}A call waits for {}{end}\n{} / {} ({}), grant {}, until {}",
        say(&approval.question.asked().replace('`', "")),
        say(&call.server),
        say(&call.tool),
        say(&call.class),
        say(&call.grant),
        say(&second(approval.expires).to_string()),
    );
    if let Some(note) = &approval.question.note {
        out.push('\n');
        out.push_str(&say(note));
    }
    if let Some(arguments) = &approval.arguments {
        out.push('\n');
        out.push_str(&(markup.code)(&shown(arguments)));
    }
    out.push('\n');
    out.push_str(&(markup.link)(page));
    out
}

/// Arguments with hidden characters drawn, cut to a length that chats accept.
fn shown(arguments: &str) -> String {
    let mut drawn = drawn_arguments(arguments);
    if let Some((end, _)) = drawn.char_indices().nth(SHOWN) {
        drawn.truncate(end);
        drawn.push_str(" …");
    }
    drawn
}

/// For HTML, also inside an attribute.
fn angles(text: &str) -> String {
    slack_angles(text).replace('"', "&quot;")
}

/// The three characters that Slack decodes; it would show `&quot;` as it is.
fn slack_angles(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A time without fractions of a second.
fn second(time: Timestamp) -> Timestamp {
    time.round(jiff::Unit::Second).unwrap_or(time)
}

/// Without the characters with which Slack marks text: it has no escape for them.
fn without_marks(text: &str) -> String {
    let text = text.replace('*', "\u{2217}").replace('_', "\u{ff3f}");
    text.replace('~', "\u{223c}").replace('`', "\u{2cb}")
}

/// For Markdown.
fn backslashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '@' => out.push('\u{ff20}'),
            '\n' | '\r' => out.push(' '),
            _ => {
                if c.is_ascii_punctuation() {
                    out.push('\\');
                }
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolgate_audit::CallId;
    use toolgate_policy::{ApprovalState, Digest, Question};
    use toolgate_store::HeldCall;

    use super::*;

    fn approval() -> StoredApproval {
        let time = |seconds| Timestamp::from_second(seconds).unwrap();
        StoredApproval {
            id: "apr_1".into(),
            binding: Digest([0; 32]),
            state: ApprovalState::Pending,
            call: HeldCall {
                call_id: CallId::new(0, [0; 10]),
                grant: "la_ptop".into(),
                identity: Some("desk".into()),
                client: None,
                server: "files".into(),
                session_id: None,
                tool: "rm*".into(),
                fingerprint: None,
                digest: Digest([1; 32]),
                members: "{}".into(),
                class: "destructive".into(),
                rule: "/tools/rm/approve".into(),
                policy: None,
                policy_hash: None,
            },
            arguments: Some("{\"a\":\"<b>`x`@all&\u{202e}\"}".into()),
            question: Question {
                approvers: vec!["ops".to_owned()],
                no_common_group: false,
                people: 1,
                note: Some("look *twice*".to_owned()),
            },
            answers: Vec::new(),
            created: time(0),
            expires: time(1800),
            ended: None,
        }
    }

    fn numbers() -> StoredApproval {
        StoredApproval { arguments: Some(r#"{"b":1e0, "a":1.0}"#.into()), ..approval() }
    }

    #[test]
    fn bodies_of_every_format() {
        let page = "https://gate.example.com/approvals/apr_1";
        let written = |format, chat| -> Value {
            serde_json::from_str(&body(&approval(), page, format, chat)).unwrap()
        };
        assert_eq!(
            written(NoticeFormat::Slack, None),
            json!({"text": "*A call waits for the group ops*\nfiles / rm\u{2217} (destructive), grant \
                la\u{ff3f}ptop, until 1970-01-01T00:30:00Z\nlook \u{2217}twice\u{2217}\n\
                ```{\"a\":\"&lt;b&gt;\u{2cb}x\u{2cb}@all&amp;\\u{202E}\"}```\n\
                <https://gate.example.com/approvals/apr_1|Open the approval>"})
        );
        assert_eq!(
            written(NoticeFormat::Mattermost, None),
            json!({"text": "**A call waits for the group ops**\nfiles / rm\\* (destructive), grant \
                la\\_ptop, until 1970\\-01\\-01T00\\:30\\:00Z\nlook \\*twice\\*\n\n```\n\
                {\"a\":\"<b>\u{2cb}x\u{2cb}@all&\\u{202E}\"}\n```\n\n\
                [Open the approval](https://gate.example.com/approvals/apr_1)"})
        );
        assert_eq!(
            written(NoticeFormat::Telegram, Some("-100")),
            json!({
                "chat_id": "-100",
                "parse_mode": "HTML",
                "disable_web_page_preview": true,
                "text": "<b>A call waits for the group ops</b>\nfiles / rm* (destructive), grant \
                    la_ptop, until 1970-01-01T00:30:00Z\nlook *twice*\n\
                    <pre>{&quot;a&quot;:&quot;&lt;b&gt;`x`@all&amp;\\u{202E}&quot;}</pre>\n\
                    <a href=\"https://gate.example.com/approvals/apr_1\">Open the approval</a>",
            })
        );
        let full = written(NoticeFormat::Json, None);
        assert_eq!((&full["event"], &full["url"]), (&json!("approval.pending"), &json!(page)));
        assert_eq!(full["arguments"], json!({"a": "<b>`x`@all&\u{202e}"}));
        // Numbers keep the spelling that was hashed.
        let spelled = body(&numbers(), page, NoticeFormat::Json, None);
        assert!(spelled.contains(r#""arguments":{"b":1e0, "a":1.0}"#), "{spelled}");
        assert!(spelled.contains(r#""shown":"{\"b\":1e0,\"a\":1.0}""#), "{spelled}");
        assert_eq!(full["shown"], r#"{"a":"<b>`x`@all&\u{202E}"}"#);
    }

    #[test]
    fn text_of_agents_cannot_mark_anything_up() {
        let hostile = "<!channel> @all `x` *y* [z](http://a) <b>&\u{202e}";
        let drawn = draw(hostile);
        for markup in [&SLACK, &MATTERMOST, &TELEGRAM] {
            let mut approval = approval();
            approval.call.tool = "rm\nApproved by: admin".into();
            let lines = text(&approval, "http://a/b", markup);
            assert!(lines.lines().all(|line| !line.starts_with("Approved")), "{lines}");
        }
        let slack = (SLACK.escape)(&drawn);
        assert!(!slack.contains('<') && !slack.contains('*') && !slack.contains('`'), "{slack}");
        let code = (SLACK.code)(&drawn);
        assert_eq!(code.matches('`').count(), 6, "{code}");
        let mattermost = (MATTERMOST.escape)(&drawn);
        assert!(!mattermost.contains('@') && mattermost.contains("\\[z\\]\\("), "{mattermost}");
        let telegram = (TELEGRAM.escape)(&drawn);
        assert!(telegram.contains("&lt;b&gt;&amp;") && !telegram.contains('<'), "{telegram}");
        for text in [slack, mattermost, telegram] {
            assert!(!text.contains('\u{202e}') && text.contains("202E"), "{text}");
        }
    }
}
