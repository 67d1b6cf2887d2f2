//! A client whose model answers with its name, and that records progress notifications.

use std::sync::{Arc, Mutex};

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientInfo, CreateMessageRequestParams,
    CreateMessageResult, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
    SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::Value;

use crate::gate::Gate;
use crate::upstream::Era;

#[derive(Clone)]
pub(crate) struct Agent {
    name: String,
    pub(crate) progress: Arc<Mutex<Vec<String>>>,
}

/// A client that is connected.
pub(crate) type Connected = RunningService<RoleClient, Agent>;

pub(crate) async fn connect(gate: &Gate, path: &str, era: Era, name: &str) -> (Connected, Agent) {
    let agent = Agent { name: name.to_owned(), progress: Arc::default() };
    let url = format!("http://{}{path}", gate.mcp());
    let transport = StreamableHttpClientTransport::from_uri(url);
    let lifecycle = match era {
        Era::Sessionful => ClientLifecycleMode::Initialize,
        Era::Sessionless => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    (agent.clone().serve_with_lifecycle(transport, lifecycle).await.unwrap(), agent)
}

/// Calls a tool; its text, or the error.
pub(crate) async fn call(
    client: &Connected,
    tool: String,
    arguments: &Value,
) -> Result<String, String> {
    let arguments = arguments.as_object().unwrap().clone();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(params).await.map_err(|error| error.to_string())?;
    Ok(result.content[0].as_text().unwrap().text.clone())
}

impl ClientHandler for Agent {
    fn get_info(&self) -> ClientInfo {
        let capabilities = ClientCapabilities::builder().enable_sampling().build();
        ClientInfo::new(capabilities, Implementation::new(self.name.clone(), "1"))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let question = serde_json::to_string(&params.messages).unwrap();
        assert!(question.contains(&self.name), "asked what another agent was to be asked");
        let answer = SamplingMessage::assistant_text(format!("{} answers", self.name));
        Ok(CreateMessageResult::new(answer, "model".to_owned()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().unwrap().push(params.message.unwrap_or_default());
    }
}
