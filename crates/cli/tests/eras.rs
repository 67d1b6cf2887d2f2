//! Every client with every server: rmcp's client and server, each with and without a handshake, and
//! toolgate between them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fail at any step"
)]
#![expect(deprecated, reason = "sampling is deprecated in the newest protocol and alive in others")]

use std::borrow::Cow;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rmcp::handler::client::ClientHandler;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientInfo,
    ContentBlock, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ErrorData,
    Implementation, InputRequest, InputRequests, InputRequiredResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, SamplingMessage,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, RoleServer};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

const BOTH: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server that echoes, reports progress, and asks the client's model, as its era does.
struct Upstream(Era);

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        if self.0 == Era::Modern {
            info.protocol_version = ProtocolVersion::V_2026_07_28;
        }
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.0 {
            Era::Legacy => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            Era::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
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
        let question = || {
            let question = SamplingMessage::user_text(arguments["question"].to_string());
            CreateMessageRequestParams::new(vec![question], 10)
        };
        let text = match (request.name.as_ref(), self.0, request.input_responses) {
            ("echo", ..) => arguments.to_string(),
            ("ask", Era::Legacy, _) => {
                let answer = context.peer.create_message(question()).await.expect("an answer");
                serde_json::to_string(&answer.message).unwrap()
            }
            ("ask", Era::Modern, None) => {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress = ProgressNotificationParam::new(token, 1.0);
                    context.peer.notify_progress(progress).await.expect("progress is delivered");
                }
                let asked = InputRequest::CreateMessage(CreateMessageRequest::new(question()));
                let asked = InputRequests::from([("model".to_owned(), asked)]);
                return Ok(InputRequiredResult::new(Some(asked), Some("mine".to_owned())).into());
            }
            ("ask", Era::Modern, Some(answers)) => {
                assert_eq!(request.request_state.as_deref(), Some("mine"));
                answers["model"].to_string()
            }
            (other, ..) => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// A client whose model says its name, and that counts the progress it was told of.
#[derive(Clone)]
struct Agent {
    name: String,
    progress: Arc<Mutex<usize>>,
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

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        *self.progress.lock().unwrap() += 1;
    }
}

struct Gate {
    child: Child,
    url: String,
    _home: tempfile::TempDir,
}

impl Gate {
    async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("toolgate.yaml");
        let (old, new) = (upstream(Era::Legacy).await, upstream(Era::Modern).await);
        let text = format!(
            "version: 1\ndata: data\n\
             listen: {{ mcp: 127.0.0.1:0, sessions: off, admin: off }}\n\
             servers: {{ legacy: {{ url: \"{old}\" }}, modern: {{ url: \"{new}\" }} }}\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(["serve", "--ready-json", "--config"])
            .arg(&config)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = format!("{}/mcp", ready["mcp"].as_str().unwrap());
        Self { child, url, _home: home }
    }

    async fn connect(
        &self,
        path: &str,
        era: Era,
        name: &str,
    ) -> (RunningService<RoleClient, Agent>, Agent) {
        let agent = Agent { name: name.to_owned(), progress: Arc::default() };
        let url = format!("{}{path}", self.url);
        let transport = StreamableHttpClientTransport::from_uri(url);
        let lifecycle = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        (agent.clone().serve_with_lifecycle(transport, lifecycle).await.unwrap(), agent)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

async fn upstream(era: Era) -> String {
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

fn call(tool: String, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn any_client_with_any_server() {
    let gate = Gate::start().await;
    for client_era in BOTH {
        for server in ["legacy", "modern"] {
            for (path, prefix) in
                [(format!("/{server}"), String::new()), (String::new(), format!("{server}__"))]
            {
                let what = format!("{client_era:?} client, {server} server, /mcp{path}");
                let name = format!("{client_era:?}-{server}");
                let (client, agent) = gate.connect(&path, client_era, &name).await;
                let tools = client.list_all_tools().await.expect(&what);
                let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
                assert!(names.contains(&format!("{prefix}echo")), "{what}: {names:?}");

                let arguments = json!({"region": "Привет", "n": 1.5, "deep": [[{"a": null}]]});
                let echoed = client.call_tool(call(format!("{prefix}echo"), &arguments)).await;
                let echoed = echoed.expect(&what).content[0].as_text().unwrap().text.clone();
                assert_eq!(serde_json::from_str::<Value>(&echoed).unwrap(), arguments, "{what}");

                let arguments = json!({"question": format!("{name}?")});
                let answer = client.call_tool(call(format!("{prefix}ask"), &arguments)).await;
                let answer = answer.expect(&what).content[0].as_text().unwrap().text.clone();
                assert!(answer.contains(&format!("{name} answers")), "{what}: {answer}");
                let told = *agent.progress.lock().unwrap();
                assert!(server == "legacy" || told > 0, "{what}: no progress was told");
                client.cancel().await.unwrap();
            }
        }
    }
}
