//! An independent Rust implementation of the protocol at both ends: rmcp's client, toolgate,
//! rmcp's server.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fail at any step"
)]
#![expect(deprecated, reason = "sampling is deprecated in the newest protocol and alive in others")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rmcp::handler::client::ClientHandler;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientInfo,
    ContentBlock, CreateMessageRequestParams, CreateMessageResult, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, SamplingMessage,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleClient, RoleServer, ServiceExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A server that echoes, reports progress, and asks the client's model.
struct Upstream;

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().unwrap().clone();
        let tool = |name: &'static str| Tool::new(name, "for tests", Arc::new(schema.clone()));
        Ok(ListToolsResult::with_all_items(vec![tool("echo"), tool("ask")]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let text = match request.name.as_ref() {
            "echo" => arguments.to_string(),
            "ask" => {
                let token = context.meta.get_progress_token().expect("a progress token");
                let progress = ProgressNotificationParam::new(token, 1.0).with_message("asking");
                context.peer.notify_progress(progress).await.expect("progress is delivered");
                let question = SamplingMessage::user_text(arguments["question"].to_string());
                let params = CreateMessageRequestParams::new(vec![question], 10);
                let answer = context.peer.create_message(params).await.expect("an answer");
                serde_json::to_string(&answer.message).unwrap()
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// A client whose model says its name, and that remembers the progress it was told of.
#[derive(Clone)]
struct Agent {
    name: String,
    progress: Arc<Mutex<Vec<String>>>,
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

struct Gate {
    child: Child,
    url: String,
    _home: tempfile::TempDir,
}

impl Gate {
    async fn start() -> Self {
        let upstream = upstream().await;
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("toolgate.yaml");
        let text = format!(
            "version: 1\ndata: data\n\
             listen: {{ mcp: 127.0.0.1:0, sessions: off, admin: off }}\n\
             servers: {{ peer: {{ url: \"{upstream}\" }} }}\n"
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
        let url = format!("{}/mcp/peer", ready["mcp"].as_str().unwrap());
        Self { child, url, _home: home }
    }

    async fn connect(&self, name: &str) -> (RunningService<RoleClient, Agent>, Agent) {
        let agent = Agent { name: name.to_owned(), progress: Arc::default() };
        let transport = StreamableHttpClientTransport::from_uri(self.url.clone());
        (agent.clone().serve(transport).await.unwrap(), agent)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

async fn upstream() -> String {
    let service: StreamableHttpService<Upstream, LocalSessionManager> = StreamableHttpService::new(
        || Ok(Upstream),
        Arc::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

fn call(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tour() {
    let gate = Gate::start().await;
    let (client, _) = gate.connect("anna").await;
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), ["echo", "ask"]);

    let arguments = json!({"text": "Привет", "n": 1.5, "deep": [[{"a": null}]]});
    let result = client.call_tool(call("echo", &arguments)).await.unwrap();
    let echoed = result.content[0].as_text().unwrap().text.clone();
    assert_eq!(serde_json::from_str::<Value>(&echoed).unwrap(), arguments);

    let error = client.call_tool(call("missing", &json!({}))).await.unwrap_err().to_string();
    assert!(error.contains("no tool missing"), "{error}");
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_answers_its_own_server() {
    let gate = Gate::start().await;
    let names: Vec<String> = (0..8).map(|n| format!("agent-{n}")).collect();
    let mut running = Vec::new();
    for name in &names {
        let (client, agent) = gate.connect(name).await;
        let name = name.clone();
        running.push(tokio::spawn(async move {
            for round in 0..5 {
                let arguments = json!({"question": format!("{name}, round {round}?")});
                let result = client.call_tool(call("ask", &arguments)).await.unwrap();
                let answer = result.content[0].as_text().unwrap().text.clone();
                assert!(answer.contains(&format!("{name} answers")), "{answer}");
            }
            assert_eq!(*agent.progress.lock().unwrap(), vec!["asking"; 5]);
            client.cancel().await.unwrap();
        }));
    }
    for one in running {
        one.await.unwrap();
    }
}
