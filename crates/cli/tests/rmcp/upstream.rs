//! A server that echoes, reports progress, and asks the client's model, as its era does.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    SamplingMessage, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::gate::Gate;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Sessionful,
    Sessionless,
}

pub(crate) const BOTH: [Era; 2] = [Era::Sessionful, Era::Sessionless];

struct Upstream(Era);

impl Era {
    /// What its server is called behind toolgate.
    pub(crate) fn server(self) -> &'static str {
        match self {
            Self::Sessionful => "sessionful",
            Self::Sessionless => "sessionless",
        }
    }
}

/// toolgate in front of a server of either era.
pub(crate) async fn gate() -> Gate {
    let (old, new) = (start(Era::Sessionful).await, start(Era::Sessionless).await);
    Gate::start(&format!(
        "servers: {{ sessionful: {{ url: \"{old}\" }}, sessionless: {{ url: \"{new}\" }} }}\n"
    ))
}

async fn start(era: Era) -> String {
    let service: StreamableHttpService<Upstream, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(Upstream(era)),
        Arc::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        if self.0 == Era::Sessionless {
            info.protocol_version = ProtocolVersion::V_2026_07_28;
        }
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.0 {
            Era::Sessionful => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            Era::Sessionless => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        });
        let schema = Arc::new(schema.as_object().unwrap().clone());
        let tool = |name: &'static str| Tool::new(name, "for tests", Arc::clone(&schema));
        Ok(ListToolsResult::with_all_items(vec![tool("echo"), tool("ask")]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let text = match (request.name.as_ref(), self.0, request.input_responses) {
            ("echo", ..) => arguments.to_string(),
            ("ask", Era::Sessionful, _) => {
                report(&context).await;
                let question = question(&arguments);
                let answer = context.peer.create_message(question).await.expect("an answer");
                serde_json::to_string(&answer.message).unwrap()
            }
            ("ask", Era::Sessionless, None) => {
                report(&context).await;
                let question = CreateMessageRequest::new(question(&arguments));
                let asked = InputRequest::CreateMessage(question);
                let asked = InputRequests::from([("model".to_owned(), asked)]);
                return Ok(InputRequiredResult::new(Some(asked), Some("mine".to_owned())).into());
            }
            ("ask", Era::Sessionless, Some(answers)) => {
                assert_eq!(request.request_state.as_deref(), Some("mine"));
                answers["model"].to_string()
            }
            (other, ..) => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn report(context: &RequestContext<RoleServer>) {
    let token = context.meta.get_progress_token().expect("a progress token");
    let progress = ProgressNotificationParam::new(token, 1.0).with_message("asking");
    context.peer.notify_progress(progress).await.expect("progress is delivered");
}

fn question(arguments: &Value) -> CreateMessageRequestParams {
    let question = SamplingMessage::user_text(arguments["question"].to_string());
    CreateMessageRequestParams::new(vec![question], 10)
}
