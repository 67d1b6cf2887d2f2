//! The same six conditions for `cel` and `cedar-policy`.
//!
//! Parsing and compiling is done once. Each has two ways: `with_json` starts from the raw text of
//! the arguments, as a gateway would; `ready` starts from arguments that are already in the
//! engine's own form, which is the least it could ever cost.

use std::sync::Arc;

use cedar_policy::{Authorizer, Decision, Entities, EntityUid, PolicySet, Request};
use cel::{Env, Program, Value};

const CEL: &str = "args.amount <= 10000 \
    && args.currency in ['EUR', 'USD', 'GBP'] \
    && args.customer.country != 'KP' \
    && has(args.reason) \
    && args.customer.id.startsWith('cus_') \
    && args.attachment.endsWith('.pdf')";

const CEDAR: &str = r#"permit(principal, action == Action::"create_charge", resource) when {
    context.amount <= 10000
    && ["EUR", "USD", "GBP"].contains(context.currency)
    && context.customer.country != "KP"
    && context has reason
    && context.customer.id like "cus_*"
    && context.attachment like "*.pdf"
};"#;

/// A compiled CEL program.
pub struct Cel {
    program: Program,
    root: cel::Context<'static, 'static>,
}

/// A parsed Cedar policy and the parts of a request that do not change.
pub struct Cedar {
    policies: PolicySet,
    authorizer: Authorizer,
    entities: Entities,
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
}

impl Cel {
    pub fn new() -> Self {
        let env = Arc::new(Env::stdlib());
        let program = env.compile(CEL).expect("the expression compiles");
        Self { program, root: cel::Context::with_env(env) }
    }

    /// From raw JSON.
    pub fn with_json(&self, arguments: &str) -> bool {
        let json: serde_json::Value = serde_json::from_str(arguments).expect("JSON");
        let value = cel::to_value(json).expect("JSON is a CEL value");
        let mut context = self.root.new_inner_scope();
        context.add_variable_from_value("args", value);
        self.ready(&context)
    }

    /// Arguments in CEL's own form.
    pub fn prepare(&self, arguments: &str) -> cel::Context<'_, 'static> {
        let json: serde_json::Value = serde_json::from_str(arguments).expect("JSON");
        let mut context = self.root.new_inner_scope();
        context.add_variable_from_value("args", cel::to_value(json).expect("a CEL value"));
        context
    }

    /// From arguments in CEL's own form.
    pub fn ready(&self, context: &cel::Context<'_, 'static>) -> bool {
        matches!(self.program.execute(context), Ok(Value::Bool(true)))
    }
}

impl Default for Cel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cedar {
    pub fn new() -> Self {
        let uid = |text: &str| text.parse().expect("an entity");
        Self {
            policies: CEDAR.parse().expect("the policy parses"),
            authorizer: Authorizer::new(),
            entities: Entities::empty(),
            principal: uid(r#"Grant::"laptop""#),
            action: uid(r#"Action::"create_charge""#),
            resource: uid(r#"Server::"pay""#),
        }
    }

    /// From raw JSON.
    pub fn with_json(&self, arguments: &str) -> bool {
        self.ready(&self.prepare(arguments))
    }

    /// A request in Cedar's own form.
    pub fn prepare(&self, arguments: &str) -> Request {
        let context = cedar_policy::Context::from_json_str(arguments, None).expect("a context");
        let (principal, action) = (self.principal.clone(), self.action.clone());
        Request::new(principal, action, self.resource.clone(), context, None).expect("a request")
    }

    /// From a request in Cedar's own form.
    pub fn ready(&self, request: &Request) -> bool {
        let response = self.authorizer.is_authorized(request, &self.policies, &self.entities);
        response.decision() == Decision::Allow
    }
}

impl Default for Cedar {
    fn default() -> Self {
        Self::new()
    }
}
