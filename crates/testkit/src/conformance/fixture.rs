//! The server: maps requests to answers.
#![expect(deprecated, reason = "logging and subscriptions are alive in the older protocols")]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResultType, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::FixtureEra;
use super::questions::{self, States};
use super::table::{answer, offer, typed};
use super::tasks;

type Context = RequestContext<RoleServer>;

/// The pause that the suite requires between two notifications of one call.
const PAUSE: Duration = Duration::from_millis(50);

/// A server; clones share its state between sessions.
#[derive(Clone)]
pub(super) struct Fixture {
    era: FixtureEra,
    shared: Arc<Shared>,
    /// Closes the streams of a session; `None` over stdio.
    sessions: Option<Arc<LocalSessionManager>>,
}

struct Shared {
    tasks: TaskManager,
    states: States,
    changes: broadcast::Sender<Change>,
    /// Receivers of subscriptions that are acknowledged, or are about to be.
    ears: Mutex<Vec<broadcast::Receiver<Change>>>,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

impl Fixture {
    pub(super) fn new(era: FixtureEra, sessions: Option<Arc<LocalSessionManager>>) -> Self {
        let shared = Shared {
            tasks: TaskManager::new(),
            states: States::default(),
            changes: broadcast::channel(64).0,
            ears: Mutex::default(),
        };
        Self { era, shared: Arc::new(shared), sessions }
    }

    /// A call of a tool that neither requests input nor becomes a task.
    async fn simple(&self, name: &str, context: &Context) -> Result<CallToolResult, ErrorData> {
        if let Some(result) = answer("tools", name) {
            let mut result: CallToolResult = typed(result.clone())?;
            // rmcp removes it if the client's protocol does not have it.
            result.result_type = Some(ResultType::COMPLETE);
            return Ok(result);
        }
        match name {
            "test_tool_with_progress" => progress(context).await,
            "test_tool_with_logging" => {
                log(context, "Tool execution started").await;
                tokio::time::sleep(PAUSE).await;
                log(context, "Tool processing data").await;
                tokio::time::sleep(PAUSE).await;
                log(context, "Tool execution completed").await;
            }
            "test_logging_tool" => log(context, "Tool execution started").await,
            "test_reconnection" => self.hang_up(context).await,
            "test_trigger_tool_change" => self.change(Change::Tools, context).await,
            "test_trigger_prompt_change" => self.change(Change::Prompts, context).await,
            _ => return Err(ErrorData::invalid_params(format!("no tool `{name}`"), None)),
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]))
    }

    /// Ends the streams of the calling session. rmcp does not pass the number of the stream to a
    /// handler, but there are few and they are numbered from 0.
    async fn hang_up(&self, context: &Context) {
        let Some(sessions) = &self.sessions else { return };
        let Some(parts) = context.extensions.get::<Parts>() else { return };
        let id = parts.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
        let handle = match id {
            Some(id) => sessions.sessions.read().await.get(id).cloned(),
            None => None,
        };
        let Some(handle) = handle else { return };
        // Earlier messages are sent before the stream ends.
        tokio::time::sleep(PAUSE).await;
        for number in 0..64 {
            // No such stream, or it has ended.
            drop(handle.close_sse_stream(number, Some(Duration::from_millis(10))).await);
        }
        // rmcp drops an answer without a receiver: wait for the client to reconnect.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    async fn change(&self, change: Change, context: &Context) {
        if is_sessionless(context) {
            // There may be no receiver.
            drop(self.shared.changes.send(change));
            return;
        }
        // A session that has ended receives nothing.
        drop(match change {
            Change::Tools => context.peer.notify_tool_list_changed().await,
            Change::Prompts => context.peer.notify_prompt_list_changed().await,
        });
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "logging": {},
            "completions": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        ServerConfig::new(typed(capabilities).unwrap_or_default())
            .with_server_info(Implementation::new("toolgate-conformance", "1.0.0"))
            .with_instructions("For the conformance suite.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.era {
            FixtureEra::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            FixtureEra::Sessionful => Cow::Owned(
                ProtocolVersion::KNOWN_VERSIONS
                    .iter()
                    .filter(|version| **version != ProtocolVersion::V_2026_07_28)
                    .cloned()
                    .collect(),
            ),
            FixtureEra::Sessionless => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }

    /// The tasks of this server exist only in the sessionless era.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.capabilities.extensions = None;
        Ok(result)
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = request.argument.value;
        let values: Vec<&str> =
            ["paris", "park", "party"].into_iter().filter(|v| v.starts_with(&begun)).collect();
        let completion = json!({"values": values, "total": values.len(), "hasMore": false});
        typed(json!({"resultType": "complete", "completion": completion}))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools: Vec<Tool> = offer("tools").ok()?;
        tools.into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(offer("tools")?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(asking) = questions::of_tool(&request, &context) {
            let asked = asking.ask(&self.shared.states, request.into(), &context).await?;
            return match asked {
                questions::QuestionOutcome::More(more) => Ok(more.into()),
                questions::QuestionOutcome::Done(text) if asking.goes_on_as_task => {
                    tasks::finished_later(&self.shared.tasks, text, &context)
                }
                questions::QuestionOutcome::Done(text) => {
                    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
                }
                questions::QuestionOutcome::Refused(text) => {
                    Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into())
                }
            };
        }
        if let Some(response) = tasks::call(&self.shared.tasks, &request, &context) {
            return response;
        }
        self.simple(&request.name, &context).await.map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(offer("resources")?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(offer("resourceTemplates")?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (answer("resources", &uri), id) {
            (Some(contents), _) => contents.clone(),
            (None, Some(id)) => {
                let text =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
            }
            (None, None) => {
                let data = json!({ "uri": uri });
                return Err(ErrorData::resource_not_found("Resource not found", Some(data)));
            }
        };
        Ok(ReadResourceResult::new(vec![typed(contents)?]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(offer("prompts")?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
        };
        let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
        let messages = match request.name.as_str() {
            "test_prompt_with_arguments" => {
                let (arg1, arg2) = (argument("arg1"), argument("arg2"));
                json!([text(&format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))])
            }
            "test_prompt_with_embedded_resource" => {
                let resource = json!({
                    "uri": argument("resourceUri"),
                    "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                });
                let embedded =
                    json!({"role": "user", "content": {"type": "resource", "resource": resource}});
                json!([embedded, text("Please process the embedded resource above.")])
            }
            "test_input_required_result_prompt" => {
                let asking = questions::of_prompt();
                match asking.ask(&self.shared.states, request.into(), &context).await? {
                    questions::QuestionOutcome::More(more) => return Ok(more.into()),
                    questions::QuestionOutcome::Done(said)
                    | questions::QuestionOutcome::Refused(said) => {
                        json!([text(&said)])
                    }
                }
            }
            name => answer("prompts", name)
                .cloned()
                .ok_or_else(|| ErrorData::invalid_params(format!("no prompt `{name}`"), None))?,
        };
        Ok(GetPromptResult::new(typed(messages)?).into())
    }

    /// Everything; the subscription receives events before it is acknowledged.
    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.shared.ears.lock().push(self.shared.changes.subscribe());
        Some(asked.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let ear = self.shared.ears.lock().pop();
        let mut ear = ear.unwrap_or_else(|| self.shared.changes.subscribe());
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = ear.recv() => change,
            };
            // The sink rejects events that were not subscribed to.
            drop(match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            });
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}

/// Whether a request is of the sessionless era.
pub(super) fn is_sessionless(context: &Context) -> bool {
    context.protocol_version().is_some_and(|v| v == ProtocolVersion::V_2026_07_28)
}

async fn progress(context: &Context) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for done in [0.0, 50.0, 100.0] {
        let params = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        // The client may have disconnected.
        drop(context.peer.notify_progress(params).await);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Logs, in the sessionless era only if the request asks for it.
async fn log(context: &Context, text: &str) {
    if is_sessionless(context) && context.meta.log_level().is_none() {
        return;
    }
    let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
    // The client may have disconnected.
    drop(context.peer.notify_logging_message(params).await);
}
