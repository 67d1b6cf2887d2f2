//! Tools and a prompt that request input before they answer, in the client's era.
//!
//! Input is a list of rounds, each a map of requests. A client of a sessionful era receives the
//! requests of a round concurrently and the tool waits for the answers; one of the sessionless era
//! receives `input_required` and retries, with a state if the tool has one.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use futures_util::future::try_join_all;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ErrorData, GetPromptRequestParams, InputRequests,
    InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::fixture::is_sessionless;
use super::table::typed;

/// The input that a tool or prompt requests, and the answer it derives.
pub(super) struct Question {
    rounds: Vec<BTreeMap<&'static str, Value>>,
    keeps_state: bool,
    pub(super) goes_on_as_task: bool,
    says: fn(&Answers) -> String,
}

type Answers = BTreeMap<String, Value>;

/// The result of requesting input.
pub(super) enum QuestionOutcome {
    /// More input is required.
    More(InputRequiredResult),
    /// All input was received.
    Done(String),
    /// A client of a sessionful era cannot provide this input.
    Refused(String),
}

/// The input in a retry of a client of the sessionless era.
#[derive(Default)]
pub(super) struct RetryInput {
    answers: InputResponses,
    state: Option<String>,
}

/// The issued states, with their round and the earlier answers.
#[derive(Default)]
pub(super) struct States {
    given: Mutex<HashMap<String, (usize, Answers)>>,
    seed: RandomState,
}

// === impl Asking ===

/// The input that a call requires, if any.
pub(super) fn of_tool(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Question> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let said = |answers: &Answers| format!("{answers:?}");
    let asking = match request.name.as_ref() {
        "test_sampling" => {
            Question::once("sampling", sampling(argument("prompt"), 100), |answers| {
                format!("LLM response: {}", model_text(answers, "sampling"))
            })
        }
        "test_elicitation" => {
            let schema = object(&json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            }));
            Question::once("elicitation", elicitation(argument("message"), &schema), |answers| {
                format!("User response: {}", user_said(answers, "elicitation"))
            })
        }
        "test_elicitation_sep1034_defaults" => completed(&defaults()),
        "test_elicitation_sep1330_enums" => completed(&choices()),
        "test_streaming_elicitation" => Question::once("name", name_please(), said),
        "test_missing_capability" => Question::once("sampling", sampling("Anything", 10), said),
        "test_input_required_result_elicitation" => {
            Question::once("user_name", name_please(), |answers| {
                format!("Hello, {}!", field(answers, "user_name", "name"))
            })
        }
        "test_input_required_result_sampling" => {
            let question = sampling("What is the capital of France?", 100);
            Question::once("capital_question", question, |answers| {
                model_text(answers, "capital_question")
            })
        }
        "test_input_required_result_list_roots" => Question::once("client_roots", roots(), said),
        "test_input_required_result_request_state" => {
            Question::once("confirm", confirmation(), |_| "state-ok".to_owned()).with_state()
        }
        "test_input_required_result_tampered_state" => {
            Question::once("confirm", confirmation(), |_| "confirmed".to_owned()).with_state()
        }
        "test_input_required_result_multiple_inputs" => {
            Question::rounds(vec![three()]).with_state()
        }
        "test_input_required_result_multi_round" => {
            let schema = object(&json!({"color": {"type": "string"}}));
            let color = elicitation("Step 2: What is your favorite color?", &schema);
            let schema = object(&json!({"name": {"type": "string"}}));
            let name = elicitation("Step 1: What is your name?", &schema);
            let rounds =
                vec![BTreeMap::from([("step1", name)]), BTreeMap::from([("step2", color)])];
            Question::rounds(rounds).with_state()
        }
        "test_input_required_result_capabilities" => {
            let mut round = three();
            round.retain(|_, question| lacks(question, context).is_none());
            Question::rounds(vec![round])
        }
        "test_tool_with_task" => {
            let mut asking = Question::once("user_name", name_please(), |answers| {
                format!("Hello, {}!", field(answers, "user_name", "name"))
            });
            asking.goes_on_as_task = true;
            asking
        }
        _ => return None,
    };
    Some(asking)
}

/// The input that the prompt requires.
pub(super) fn of_prompt() -> Question {
    let schema = object(&json!({"context": {"type": "string"}}));
    let question = elicitation("What context should the prompt use?", &schema);
    Question::once("user_context", question, |answers| {
        format!("Use this context: {}", field(answers, "user_context", "context"))
    })
}

impl Question {
    fn once(key: &'static str, question: Value, says: fn(&Answers) -> String) -> Self {
        let rounds = vec![BTreeMap::from([(key, question)])];
        Self { rounds, keeps_state: false, goes_on_as_task: false, says }
    }

    fn rounds(rounds: Vec<BTreeMap<&'static str, Value>>) -> Self {
        let says = |answers: &Answers| format!("answered: {answers:?}");
        Self { rounds, keeps_state: false, goes_on_as_task: false, says }
    }

    fn with_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// Requests input in the client's era.
    pub(super) async fn ask(
        &self,
        states: &States,
        brought: RetryInput,
        context: &RequestContext<RoleServer>,
    ) -> Result<QuestionOutcome, ErrorData> {
        let mut questions = self.rounds.iter().flat_map(BTreeMap::values);
        if let Some(lacking) = questions.find_map(|question| lacks(question, context)) {
            if !is_sessionless(context) {
                return Ok(QuestionOutcome::Refused(format!("the client has no {lacking}")));
            }
            let required: ClientCapabilities = typed(json!({ lacking: {} }))?;
            return Err(ErrorData::missing_required_client_capability(required));
        }
        if is_sessionless(context) {
            self.ask_again(states, brought)
        } else {
            self.ask_now(context).await
        }
    }

    /// Sends each round's requests and waits for their answers.
    async fn ask_now(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<QuestionOutcome, ErrorData> {
        let mut answers = Answers::new();
        for round in &self.rounds {
            let answered = round.iter().map(async |(key, question)| {
                let request: ServerRequest = typed(question.clone())?;
                let answer = context.peer.send_request(request).await.map_err(|error| {
                    ErrorData::internal_error(format!("the client did not answer: {error}"), None)
                })?;
                Ok::<_, ErrorData>(((*key).to_owned(), json!(answer)))
            });
            answers.extend(try_join_all(answered).await?);
        }
        Ok(QuestionOutcome::Done((self.says)(&answers)))
    }

    /// Takes the provided input and requests what is missing.
    fn ask_again(
        &self,
        states: &States,
        brought: RetryInput,
    ) -> Result<QuestionOutcome, ErrorData> {
        let (mut at, mut answers) = match brought.state {
            Some(state) if self.keeps_state => states.open(&state)?,
            _ => (0, Answers::new()),
        };
        let fits = |(key, question): (&&str, &Value)| {
            brought.answers.get(*key).is_some_and(|answer| fits(question, answer))
        };
        if let Some(round) = self.rounds.get(at)
            && round.iter().all(fits)
        {
            answers.extend(brought.answers);
            at += 1;
        }
        let Some(round) = self.rounds.get(at) else {
            return Ok(QuestionOutcome::Done((self.says)(&answers)));
        };
        let mut requests = InputRequests::new();
        for (key, question) in round {
            requests.insert((*key).to_owned(), typed(question.clone())?);
        }
        let state = self.keeps_state.then(|| states.give(at, answers));
        Ok(QuestionOutcome::More(InputRequiredResult::new(Some(requests), state)))
    }
}

impl From<CallToolRequestParams> for RetryInput {
    fn from(request: CallToolRequestParams) -> Self {
        let answers = request.input_responses.unwrap_or_default();
        Self { answers, state: request.request_state }
    }
}

impl From<GetPromptRequestParams> for RetryInput {
    fn from(request: GetPromptRequestParams) -> Self {
        let answers = request.input_responses.unwrap_or_default();
        Self { answers, state: request.request_state }
    }
}

impl States {
    fn give(&self, round: usize, answers: Answers) -> String {
        let mut given = self.given.lock();
        let name = format!("state-{:016x}", self.seed.hash_one(given.len()));
        given.insert(name.clone(), (round, answers));
        name
    }

    fn open(&self, name: &str) -> Result<(usize, Answers), ErrorData> {
        let given = self.given.lock().get(name).cloned();
        given.ok_or_else(|| ErrorData::invalid_params("not a requestState of this server", None))
    }
}

/// The capability that a request needs and the client has not declared.
fn lacks(question: &Value, context: &RequestContext<RoleServer>) -> Option<&'static str> {
    let needed = match question.get("method").and_then(Value::as_str) {
        Some("elicitation/create") => "elicitation",
        Some("sampling/createMessage") => "sampling",
        _ => "roots",
    };
    let declared = json!(context.client_capabilities());
    declared.get(needed).is_none().then_some(needed)
}

/// Whether an answer has the requested shape.
fn fits(question: &Value, answer: &Value) -> bool {
    match question.get("method").and_then(Value::as_str) {
        Some("elicitation/create") => answer.get("action").is_some_and(Value::is_string),
        Some("sampling/createMessage") => answer.get("content").is_some(),
        _ => answer.get("roots").is_some_and(Value::is_array),
    }
}

fn field(answers: &Answers, key: &str, name: &str) -> String {
    let field = answers.get(key).and_then(|answer| answer.pointer(&format!("/content/{name}")));
    field.and_then(Value::as_str).unwrap_or("nobody").to_owned()
}

fn model_text(answers: &Answers, key: &str) -> String {
    let content = answers.get(key).and_then(|answer| answer.get("content"));
    let text = content.and_then(|c| c.get("text").or_else(|| c.pointer("/0/text")));
    text.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn user_said(answers: &Answers, key: &str) -> String {
    let part = |name| answers.get(key).and_then(|answer| answer.get(name)).cloned();
    let action = part("action").unwrap_or_default();
    let content = part("content").unwrap_or_default();
    format!("action={}, content={content}", action.as_str().unwrap_or_default())
}

fn completed(schema: &Value) -> Question {
    Question::once("elicitation", elicitation("Please fill in", schema), |answers| {
        format!("Elicitation completed: {}", user_said(answers, "elicitation"))
    })
}

fn three() -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("user_name", name_please()),
        ("greeting", sampling("Generate a greeting", 50)),
        ("client_roots", roots()),
    ])
}

fn name_please() -> Value {
    elicitation("What is your name?", &object(&json!({"name": {"type": "string"}})))
}

fn confirmation() -> Value {
    elicitation("Please confirm", &object(&json!({"ok": {"type": "boolean"}})))
}

fn roots() -> Value {
    json!({"method": "roots/list"})
}

fn sampling(text: &str, max_tokens: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": max_tokens}})
}

fn elicitation(message: &str, schema: &Value) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

/// A schema of an object whose properties are all required.
fn object(properties: &Value) -> Value {
    let required: Vec<&String> =
        properties.as_object().into_iter().flat_map(|p| p.keys()).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn defaults() -> Value {
    json!({"type": "object", "required": [], "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": true},
    }})
}

fn choices() -> Value {
    let titled = json!([
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]);
    let plain = json!(["option1", "option2", "option3"]);
    json!({"type": "object", "required": [], "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }})
}
