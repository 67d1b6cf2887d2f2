//! Names of the methods that toolgate knows; every other method passes unread.

use toolgate_json::{imitates, shown};

/// Opens a session: version and capabilities.
pub const INITIALIZE: &str = "initialize";
/// The client has received the answer to [`INITIALIZE`].
pub const INITIALIZED: &str = "notifications/initialized";
/// Checks that the other side is alive.
pub const PING: &str = "ping";

/// Requests the capabilities of a server; since 2026-07-28, which has no [`INITIALIZE`].
pub const DISCOVER: &str = "server/discover";
/// Opens a stream of change notifications; since 2026-07-28.
pub const LISTEN: &str = "subscriptions/listen";
/// The first message on such a stream: the accepted subset of the filter.
pub const LISTEN_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// The list of tools has changed.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to changes of a resource.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends [`RESOURCES_SUBSCRIBE`].
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// The list of resources has changed.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// A resource has changed.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";

/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Fills in a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// The list of prompts has changed.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";

/// Completes an argument of a prompt or a template.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Sets the log level that the client wants.
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// A log message.
pub const MESSAGE: &str = "notifications/message";
/// The progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";

/// The server requests a completion of the client's model.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// The server requests input from the user.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// The user has completed the elicitation at its URL.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// The server requests the client's roots.
pub const ROOTS_LIST: &str = "roots/list";
/// The client's roots have changed.
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";

/// Requests the state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Lists tasks.
pub const TASKS_LIST: &str = "tasks/list";
/// Requests the result of a task.
pub const TASKS_RESULT: &str = "tasks/result";
/// Provides input that a task requires; since 2026-07-28.
pub const TASKS_UPDATE: &str = "tasks/update";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// A task's state has changed.
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// The same since 2026-07-28.
pub const TASKS_CHANGED: &str = "notifications/tasks";

/// The prefix of every notification.
pub const NOTIFICATIONS: &str = "notifications/";

/// Requests that need no permit: they open, list and end, and do nothing else. Only these,
/// notifications and responses may reach a server without one.
pub const CLOSED: [&str; 10] = [
    INITIALIZE,
    PING,
    DISCOVER,
    TOOLS_LIST,
    PROMPTS_LIST,
    RESOURCES_LIST,
    RESOURCES_TEMPLATES_LIST,
    LOGGING_SET_LEVEL,
    RESOURCES_UNSUBSCRIBE,
    LISTEN,
];

/// Whether a message of this method is a notification, and so needs no permit.
pub fn is_notification(method: &str) -> bool {
    method.starts_with(NOTIFICATIONS)
}

/// Whether a request of this method is about one task. This includes methods that the protocol does
/// not define: a server may have its own.
pub fn is_about_task(method: &str) -> bool {
    method.starts_with("tasks/") && method != TASKS_LIST
}

/// Methods that protocol 2026-07-28 has removed.
pub const REMOVED: [&str; 7] = [
    INITIALIZE,
    PING,
    LOGGING_SET_LEVEL,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    TASKS_LIST,
    TASKS_RESULT,
];

/// Every method of the protocol. No other name may imitate one of them.
pub const KNOWN: [&str; 36] = [
    INITIALIZE,
    INITIALIZED,
    PING,
    DISCOVER,
    LISTEN,
    LISTEN_ACKNOWLEDGED,
    TOOLS_LIST,
    TOOLS_CALL,
    TOOLS_LIST_CHANGED,
    RESOURCES_LIST,
    RESOURCES_TEMPLATES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    RESOURCES_LIST_CHANGED,
    RESOURCES_UPDATED,
    PROMPTS_LIST,
    PROMPTS_GET,
    PROMPTS_LIST_CHANGED,
    COMPLETION_COMPLETE,
    LOGGING_SET_LEVEL,
    MESSAGE,
    PROGRESS,
    CANCELLED,
    SAMPLING_CREATE_MESSAGE,
    ELICITATION_CREATE,
    ELICITATION_COMPLETE,
    ROOTS_LIST,
    ROOTS_LIST_CHANGED,
    TASKS_GET,
    TASKS_LIST,
    TASKS_RESULT,
    TASKS_UPDATE,
    TASKS_CANCEL,
    TASKS_STATUS,
    TASKS_CHANGED,
];

/// The maximum length of a method name in bytes.
pub const MAX_METHOD: usize = 256;

/// Why a method name is rejected, for its sender: it imitates one of the protocol, or a server may
/// read it as another. A name that is too long is not checked.
pub fn fault(name: &str) -> Option<String> {
    if name.len() > MAX_METHOD || KNOWN.contains(&name) {
        return None;
    }
    if let Some(known) = imitates(name, &KNOWN) {
        return Some(format!("the method `{}` imitates `{known}`", shown(name)));
    }
    if name.chars().any(char::is_control) {
        return Some("the name of a method has no control characters".to_owned());
    }
    // Some servers route by path.
    if name.split('/').any(|part| matches!(part, "." | "..")) {
        return Some(format!("the method `{}` is a relative path", shown(name)));
    }
    None
}

/// The keys directly in the `params` of this method that no other key may imitate; the whole
/// `params` are then read strictly. Empty for methods whose `params` decide nothing.
pub fn strict_keys(method: &str) -> Option<&'static [&'static str]> {
    Some(match method {
        TOOLS_CALL | PROMPTS_GET | RESOURCES_READ => {
            &["name", "arguments", "uri", "_meta", "task", "requestState", "inputResponses"]
        }
        RESOURCES_SUBSCRIBE | RESOURCES_UNSUBSCRIBE => &["uri", "_meta"],
        COMPLETION_COMPLETE => &["ref", "argument", "context", "_meta"],
        method if is_about_task(method) => &["taskId", "requestState", "inputResponses", "_meta"],
        TASKS_LIST | TOOLS_LIST | PROMPTS_LIST | RESOURCES_LIST | RESOURCES_TEMPLATES_LIST => {
            &["cursor", "_meta"]
        }
        LOGGING_SET_LEVEL => &["level", "_meta"],
        LISTEN => &["notifications", "_meta"],
        _ => return None,
    })
}

/// An object in the `params` of this method that decides something: its key, and its keys that no
/// other key may imitate.
pub fn strict_part(method: &str) -> Option<(&'static str, &'static [&'static str])> {
    (method == COMPLETION_COMPLETE).then_some(("ref", &["type", "name", "uri"]))
}
