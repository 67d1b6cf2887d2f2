//! The table of routes: method, path, role, input, output and handler.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toolgate_control::Role;
use toolgate_control::{
    FreezeItem, GrantItem, PersonItem, Plan, PolicyItem, PolicyText, ServerItem, ToolDecision,
};

use crate::api::Ask;
use crate::handle::{
    approvals, audit, clock, console, delegation, events, freeze, grants, local, people, policies,
    revocation, servers, standing, status, tool, tools,
};
use crate::openapi::document;
use crate::reply::{Answer, List, Listed, ok};
use crate::route::{Body, Route, Verb};

const PAGE: &[(&str, &str)] =
    &[("after", "the `next` of the part before"), ("limit", "at most so many items")];

const GRANT: &[(&str, &str)] = &[("grant", "only tools that this grant can reach")];

const APPROVALS: &[(&str, &str)] = &[
    ("state", "only those in this state: pending, approved, denied, expired, consumed"),
    ("grant", "only those of the grant with this label"),
    ("after", "the `next` of the part before"),
    ("limit", "at most so many items; 100 if not given, up to 10000"),
];

const AUDIT: &[(&str, &str)] = &[
    ("after", "only rows after this `seq`"),
    ("limit", "at most so many rows; 100 if not given, up to 1000"),
    ("grant", "only rows of the grant with this label"),
    ("tool", "only rows of this tool"),
    ("decision", "only rows with this decision"),
    ("kind", "only rows of this kind"),
    ("person", "only rows of what this person did"),
    ("server", "only rows of this server"),
    ("session", "only rows of the session with this id"),
    ("code", "only rows with this `error_code`"),
    ("since", "only rows of this time (RFC 3339) or later"),
    ("until", "only rows before this time"),
    ("order", "`newest`: the newest rows first; then `next` is passed as `before`"),
    ("before", "only rows before this `seq`"),
];

fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Any JSON object.
fn object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object" })
}

macro_rules! routes {
    ($($verb:ident $path:literal $role:ident $summary:literal
       [$query:expr] [$($body:tt)*] $($status:literal)|+ [$($answer:tt)*] $handle:path;)+) => {
        /// Every route.
        pub(crate) const ROUTES: &[Route] = &[$(Route {
            method: Verb::$verb,
            path: $path,
            role: Role::$role,
            summary: $summary,
            query: $query,
            body: routes!(@body $($body)*),
            statuses: &[$($status),+],
            answer: routes!(@shape $($answer)*),
            handle: |ask| Box::pin($handle(ask)),
        },)+];
    };
    (@body) => { None };
    (@body document) => { Some(Body::Document) };
    (@body any) => { Some(Body::Json(object)) };
    (@body $type:ty) => { Some(Body::Json(shape::<$type>)) };
    (@shape) => { None };
    (@shape any) => { Some(object) };
    (@shape $type:ty) => { Some(shape::<$type>) };
}

routes! {
    Get "/api/v1/openapi.json" Viewer "This OpenAPI document"
        [&[]] [] 200 [any] describe;
    Get "/api/v1/status" Viewer "Listeners, the state of the audit, and active freezes"
        [&[]] [] 200 [status::Status] status::get;
    Get "/api/v1/servers" Viewer "Servers"
        [PAGE] [] 200 [List<Listed<ServerItem>>] servers::list;
    Post "/api/v1/servers" Admin "Add a server: a name and an entry as in `servers` of toolgate.yaml"
        [&[]] [any] 201 [servers::Added] servers::add;
    Post "/api/v1/look" Admin "Start a server that is not added yet, list its tools with their risk, and end it"
        [&[]] [any] 200 [servers::Looked] servers::look;
    Delete "/api/v1/servers/{name}" Admin "Remove a server that was added"
        [&[]] [] 204 [] servers::remove;
    Post "/api/v1/servers/{name}/test" Admin "Connect to a server and list its tools"
        [&[]] [] 200 [servers::Tested] servers::test;
    Get "/api/v1/servers/{name}/log" Admin "The last lines that a server printed on stderr, the oldest first; secrets that toolgate gave it are masked"
        [&[]] [] 200 [servers::Log] servers::log;
    Get "/api/v1/sessions" Viewer "Connected sessions"
        [PAGE] [] 200 [List<serde_json::Value>] tools::sessions;
    Get "/api/v1/tools" Viewer "Tools in the last lists of servers"
        [PAGE] [] 200 [List<tools::ToolItem>] tools::list;
    Get "/api/v1/tools/{server}/{tool}" Viewer "One tool: its newest and its approved definition, its risk and why, the recommended rule"
        [&[]] [] 200 [tool::Detail] tool::get;
    Post "/api/v1/tools/{server}/{tool}/approve" Admin "Approve the definition of a tool; 409 if it has another fingerprint by now"
        [&[]] [tools::ApprovalBody] 200 [tools::Review] tools::approve;
    Post "/api/v1/tools/{server}/{tool}/reject" Admin "Reject a quarantined definition: it stays quarantined; 409 if the tool has another one by now"
        [&[]] [tools::ApprovalBody] 200 [tools::Review] tools::reject;
    Post "/api/v1/tools/{server}/{tool}/call" Admin "Call a tool with the rights of a grant; the call is decided, counted and recorded as one of the grant, with the person"
        [&[]] [tool::Called] 200 [tool::Messages] tool::call;
    Get "/api/v1/grants" Viewer "Grants"
        [PAGE] [] 200 [List<Listed<GrantItem>>] grants::list;
    Post "/api/v1/grants" Admin "Create a grant; its token is returned only here"
        [&[]] [grants::New] 201 [grants::Made] grants::create;
    Patch "/api/v1/grants/{id}" PolicyManager "Change a grant; anything but its policy needs the role `admin`"
        [&[]] [grants::Changes] 200 [GrantItem] grants::patch;
    Get "/api/v1/grants/{id}/permissions" Viewer "What the policy of a grant decides about every tool that it can reach, before anything was used; empty without a policy"
        [PAGE] [] 200 [List<ToolDecision>] grants::permissions;
    Post "/api/v1/grants/{id}/rotate" Admin "Replace the token of a grant; the old one stops working at once"
        [&[]] [] 200 [grants::Made] grants::rotate;
    Delete "/api/v1/grants/{id}" Admin "Revoke a grant"
        [&[]] [] 204 [] revocation::revoke;
    Post "/api/v1/grants/{id}/restore" Admin "End the revocation of a grant of toolgate.yaml"
        [&[]] [] 204 [] revocation::restore;
    Post "/api/v1/grants/{id}/delegate" Admin "Get a token that calls with the rights of a grant for five minutes; calls are recorded with the person"
        [&[]] [] 201 [delegation::Made] delegation::create;
    Get "/api/v1/people" Viewer "People"
        [PAGE] [] 200 [List<PersonItem>] people::list;
    Post "/api/v1/people" Admin "Create a person; the token is returned only here"
        [&[]] [people::New] 201 [people::Made] people::create;
    Post "/api/v1/people/{id}/rotate" Admin "Replace the token of a person; the old one stops working at once"
        [&[]] [] 200 [people::Made] people::rotate;
    Delete "/api/v1/people/{id}" Admin "Revoke a person's token"
        [&[]] [] 204 [] people::revoke;
    Get "/api/v1/known_tools" Viewer "The tools that policies are checked against"
        [GRANT] [] 200 [policies::KnownTools] policies::known;
    Get "/api/v1/policies" Viewer "Policies"
        [PAGE] [] 200 [List<PolicyItem>] policies::list;
    Get "/api/v1/policies/{name}" Viewer "One policy with its document"
        [&[]] [] 200 [PolicyText] policies::get;
    Put "/api/v1/policies/{name}" PolicyManager "Create a policy, or its next version"
        [&[]] [document] 200 [policies::Applied] policies::put;
    Get "/api/v1/policies/{name}/versions" Viewer "The versions of a policy in the store"
        [PAGE] [] 200 [List<policies::StoredVersion>] policies::versions;
    Post "/api/v1/policies/{name}/rollback" PolicyManager "Make an earlier version of a policy active again"
        [&[]] [policies::Rollback] 200 [policies::Applied] policies::rollback;
    Delete "/api/v1/policies/{name}" PolicyManager "Remove a policy that no grant uses"
        [&[]] [] 204 [] policies::remove;
    Post "/api/v1/policies/{name}/check" Viewer "Check a document without storing it: its problems, and its own tests"
        [&[]] [document] 200 [policies::CheckedDocument] policies::check;
    Post "/api/v1/policies/{name}/plan" Viewer "What a document would change: decisions by grant and tool, and counters that start again"
        [&[]] [document] 200 [Plan] policies::plan;
    Post "/api/v1/policies/{name}/explain" Viewer "Explain the decision of a policy about a call, with the remaining limits"
        [&[]] [policies::Asked] 200 [any] policies::explained;
    Get "/api/v1/approvals" Viewer "Held calls and their answers, the oldest first"
        [APPROVALS] [] 200 [List<approvals::ApprovalItem<'static>>] approvals::list;
    Get "/api/v1/approvals/standing" Viewer "Standing exceptions: similar calls that pass for a while"
        [PAGE] [] 200 [List<standing::StandingItem>] standing::list;
    Get "/api/v1/approvals/standing/{id}" Viewer "One standing exception"
        [&[]] [] 200 [standing::StandingItem] standing::get;
    Delete "/api/v1/approvals/standing/{id}" Approver "End a standing exception"
        [&[]] [] 204 [] standing::end;
    Get "/api/v1/approvals/{id}" Viewer "One approval: what was hashed, the grant's recent calls, limits, and what differs from the last approved call"
        [&[]] [] 200 [approvals::Detail<'static>] approvals::get;
    Post "/api/v1/approvals/{id}/approve" Approver "Approve a held call"
        [&[]] [approvals::Reply] 200 [approvals::ApprovalItem<'static>] approvals::approve;
    Post "/api/v1/approvals/{id}/deny" Approver "Deny a held call"
        [&[]] [approvals::Reply] 200 [approvals::ApprovalItem<'static>] approvals::deny;
    Get "/api/v1/freeze" Viewer "Active freezes"
        [PAGE] [] 200 [List<FreezeItem>] freeze::list;
    Post "/api/v1/freeze" Admin "Freeze a grant, a server, a session, or everything; 200 with the same id if it is frozen already"
        [&[]] [freeze::What] 201 | 200 [freeze::Made] freeze::create;
    Delete "/api/v1/freeze/{id}" Admin "End a freeze"
        [&[]] [] 204 [] freeze::end;
    Put "/api/v1/local" Admin "Switch local mode (calls without a token) on or off"
        [&[]] [local::Wish] 200 [local::Wish] local::put;
    Post "/api/v1/clock/accept" Admin "Accept the current clock after it was far ahead; counters keep their values"
        [&[]] [clock::Wish] 200 [clock::Accepted] clock::accept;
    Post "/api/v1/console/link" Viewer "Get a link that signs the caller in to the console; it works once, for 60 seconds"
        [&[]] [] 201 [console::Made] console::link;
    Get "/api/v1/audit" Viewer "Audit rows, ascending"
        [AUDIT] [] 200 [List<serde_json::Value>] audit::list;
    Post "/api/v1/audit/verify" Viewer "Verify the whole audit: the chain of hashes and its signed checkpoints"
        [&[]] [] 200 [audit::Verified] audit::verify;
    Get "/api/v1/audit/{call_id}" Viewer "All rows of one call, ascending"
        [&[]] [] 200 [List<serde_json::Value>] audit::of_call;
    Get "/api/v1/events" Viewer "Audit rows as they are written (server-sent events); resumes after Last-Event-ID"
        [&[("after", "start after this `seq`")]] [] 200 [] events::stream;
}

/// The OpenAPI document of this table.
pub fn openapi() -> serde_json::Value {
    document(ROUTES)
}

async fn describe(_: Ask) -> Answer {
    ok(&openapi())
}
