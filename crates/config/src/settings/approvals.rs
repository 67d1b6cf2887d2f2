//! `approvals`: who may answer held calls, and who is told about them.

use crate::finding::Span;
use crate::problem::code;
use crate::reader::{Reader, section};
use crate::value::{Keyword, Scope, Secret, Switch, Text, Word, expand};

/// How people answer held calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalsConfig {
    /// Whether a person may not answer the calls of a grant with their own name as identity. By
    /// default that is so once there is a second person, or the policy names approvers.
    pub four_eyes: Option<bool>,
    /// Where notices about held calls go.
    pub webhook: Option<WebhookConfig>,
    /// Their form.
    pub format: NoticeFormat,
    /// The Telegram chat.
    pub chat_id: Option<String>,
}

/// Where notices about held calls go. The address of a chat is a secret too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// The address.
    pub url: Secret,
    /// Signs notices.
    pub secret: Option<Secret>,
}

/// The form of notices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NoticeFormat {
    /// For programs.
    #[default]
    Json,
    /// An incoming webhook of Slack.
    Slack,
    /// An incoming webhook of Mattermost.
    Mattermost,
    /// `sendMessage` of a Telegram bot.
    Telegram,
}

impl Keyword for NoticeFormat {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("json", Self::Json),
        ("slack", Self::Slack),
        ("mattermost", Self::Mattermost),
        ("telegram", Self::Telegram),
    ];
}

section! {
    /// How people answer held calls.
    #[schemars(rename = "Approvals")]
    struct RawApprovals {
        /// Whether a person whose name is the identity of a grant may not answer its approvals. Default: on as soon as there is a second person or the policy names `approvers`.
        four_eyes: Switch,
        /// Where a notice about each held call is posted.
        webhook: RawWebhook,
        /// Form of the notices: `json`, `slack`, `mattermost`, `telegram`.
        #[schemars(extend("default" = "json"))]
        format: Word<NoticeFormat>,
        /// The Telegram chat that gets the notices.
        chat_id: Text,
    }
}

section! {
    /// Where a notice about each held call is posted, signed and repeated until it is accepted.
    #[schemars(rename = "Webhook")]
    struct RawWebhook {
        /// The address; may be `env:NAME` or `file:PATH`, because the address of a chat is a secret.
        #[schemars(required)]
        url: Text,
        /// The key of the signature, as `env:NAME` or `file:PATH`. Required with `format: json`.
        secret: Text,
    }
}

impl RawApprovals {
    pub(crate) fn lower(self, reader: &mut Reader<'_>) -> ApprovalsConfig {
        let format = self.format.as_ref().map(|at| at.value.0).unwrap_or_default();
        let chat = self.chat_id.as_ref().map(|at| at.span);
        let webhook = self.webhook.and_then(|at| at.value.lower(at.span, format, reader));
        let needs_chat = format == NoticeFormat::Telegram;
        if let (Some(span), false) = (chat, needs_chat) {
            let message = "`chat_id` means something only with `format: telegram`";
            reader.error_hint(code::CONFLICT, span, message, "remove it");
        }
        if let (true, None, Some(at)) = (needs_chat, chat, &self.format) {
            let message = "`format: telegram` needs the `chat_id` of a chat";
            reader.error_hint(code::CONFLICT, at.span, message, "add `chat_id: \"-100123\"`");
        }
        if let (None, Some(at)) = (&webhook, &self.format)
            && format != NoticeFormat::default()
            && !self.unreadable.contains(&"webhook")
        {
            let message = "`format` means something only with `webhook`";
            reader.error_hint(code::CONFLICT, at.span, message, "add `webhook: { url: … }`");
        }
        ApprovalsConfig {
            four_eyes: self.four_eyes.map(|at| at.value.0),
            webhook,
            format,
            chat_id: self.chat_id.map(|at| at.value.0),
        }
    }
}

impl RawWebhook {
    fn lower(
        self,
        span: Span,
        format: NoticeFormat,
        reader: &mut Reader<'_>,
    ) -> Option<WebhookConfig> {
        let url = reader.require(self.url, "url", span, &self.unreadable)?;
        let expanded = expand(&url.value.0, url.span, Scope::Value, reader)?;
        let is_url = expanded.expose().parse::<http::Uri>().is_ok_and(|uri| {
            uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))
        });
        if !is_url {
            let message = "the address of the webhook must begin with `http://` or `https://`";
            reader.error(code::INVALID_VALUE, url.span, message);
            return None;
        }
        let secret = match self.secret {
            None => None,
            Some(at) => {
                let secret = expand(&at.value.0, at.span, Scope::Value, reader)?;
                if !secret.has_reference() || secret.expose().is_empty() {
                    let hint = "write `env:NAME` or `file:PATH`";
                    let message = "the secret of the webhook must be a reference";
                    reader.error_hint(code::LITERAL_SECRET, at.span, message, hint);
                    return None;
                }
                Some(Secret::new(secret.expose()))
            }
        };
        if secret.is_none() && format == NoticeFormat::Json {
            let message = "a webhook of `format: json` needs a `secret`, with which its receiver checks notices";
            reader.error_hint(code::CONFLICT, span, message, "add `secret: env:NAME`");
            return None;
        }
        Some(WebhookConfig { url: Secret::new(expanded.expose()), secret })
    }
}
