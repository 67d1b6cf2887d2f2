//! Tools that become tasks if the client supports the extension, and answer at once otherwise.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, ErrorData,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::{Value, json};

use super::table::typed;

type Response = Result<CallToolResponse, ErrorData>;

/// A call of a task tool; `None` for other tools.
pub(super) fn call(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Response> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let work = match request.name.as_ref() {
        "greet" => {
            let name = arguments.get("name").and_then(Value::as_str).unwrap_or("nobody");
            return Some(Ok(text(format!("Hello, {name}!")).into()));
        }
        "slow_compute" => {
            Work::Sleep(arguments.get("seconds").and_then(Value::as_f64).unwrap_or(0.0))
        }
        "failing_job" => Work::Fail,
        "protocol_error_job" => Work::Break,
        "confirm_delete" => Work::Ask(&["confirm"]),
        "multi_input" => Work::Ask(&["first", "second"]),
        _ => return None,
    };
    if !knows_tasks(context) {
        return Some(match work {
            Work::Sleep(_) => Ok(text("computed".to_owned()).into()),
            _ => Err(required()),
        });
    }
    Some(Ok(begin(tasks, work)))
}

/// A call that has received all its input, and continues as a task.
pub(super) fn finished_later(
    tasks: &TaskManager,
    said: String,
    context: &RequestContext<RoleServer>,
) -> Response {
    if !knows_tasks(context) {
        return Err(required());
    }
    Ok(begin(tasks, Work::Say(said)))
}

/// What a task does.
enum Work {
    /// Sleeps so many seconds, or until it is cancelled.
    Sleep(f64),
    Fail,
    Break,
    Ask(&'static [&'static str]),
    Say(String),
}

impl Work {
    async fn run(self, task: TaskContext) -> Result<CallToolResult, TaskExit> {
        match self {
            Self::Sleep(seconds) => {
                let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
                tokio::select! {
                    () = task.cancelled() => Err(TaskExit::Cancelled),
                    () = tokio::time::sleep(time) => Ok(text("computed".to_owned())),
                }
            }
            Self::Fail => Ok(CallToolResult::error(vec![ContentBlock::text("the job failed")])),
            Self::Break => Err(ErrorData::internal_error("the job broke", None).into()),
            Self::Ask(keys) => {
                let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
                let question = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Go on?", "requestedSchema": schema}});
                let asked = keys
                    .iter()
                    .map(async |key| task.request_input(*key, typed(question.clone())?).await);
                let answers = futures_util::future::try_join_all(asked).await?;
                Ok(text(format!("answered: {answers:?}")))
            }
            Self::Say(said) => Ok(text(said)),
        }
    }
}

fn begin(tasks: &TaskManager, work: Work) -> CallToolResponse {
    let options = TaskOptions::new().with_poll_interval_ms(50);
    let task = tasks.spawn(options, |task| Box::pin(work.run(task)));
    CreateTaskResult::new(task).into()
}

fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

fn required() -> ErrorData {
    let tasks = ClientCapabilities::builder().enable_tasks().build();
    ErrorData::missing_required_client_capability(tasks)
}

fn text(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
