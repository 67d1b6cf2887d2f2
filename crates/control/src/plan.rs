//! What a new version of a policy would change: the decisions about every known tool, for every
//! grant that uses the policy, and the counters that would start again.
//!
//! Decisions are compared for a call without arguments and before anything was used, together with
//! the conditions and other terms that apply to calls with arguments.
//! Invariant: pure; the same policies, grants and tools give the same plan.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_policy::{
    Call, Class, Effect, Identity, KnownTool, LimitState, Policy, UNUSED, explain, limits, terms,
};

use crate::control::Control;
use crate::view::GrantItem;

/// What a document would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Plan {
    /// Decisions that differ, by grant and tool.
    pub differences: Vec<Difference>,
    /// Counters that exist now and would start at zero.
    pub resets: Vec<CounterReset>,
    /// The grants that were compared; empty if no grant uses the policy.
    pub grants: Vec<String>,
    /// How many tools were compared for each of them, in sum.
    pub compared: usize,
}

/// One decision that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The label of the grant; empty if no grant uses the policy.
    pub grant: String,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Now.
    pub before: Outlook,
    /// With the document.
    pub after: Outlook,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Outlook {
    /// `allow`, `deny`, `hide` or `hold`.
    #[schemars(with = "String")]
    pub effect: Effect,
    /// The rule that decides; empty for a plain allow.
    pub rule: String,
    /// The limits that apply: `30/minute`.
    pub limits: Vec<String>,
    /// What else is asked of a call: `deny_if args.amount gt 10000`, `concurrency 2`, `shadow`.
    pub terms: Vec<String>,
}

/// The decision about one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolDecision {
    /// The server, `sessions` or `toolgate`.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its risk class.
    #[schemars(with = "String")]
    pub class: Class,
    /// The decision.
    #[serde(flatten)]
    pub outlook: Outlook,
}

/// A counter that would start at zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CounterReset {
    /// The counter.
    pub counter: String,
    /// Its window now.
    pub window: String,
}

impl Control {
    /// What replacing the active policy `name` would change.
    pub fn plan(&self, name: &str, new: &Policy, now: Timestamp) -> Plan {
        let view = self.view();
        let active = view.in_force.get(name);
        let uses =
            |grant: &&GrantItem| grant.revoked.is_none() && grant.policy.as_deref() == Some(name);
        let grants: Vec<&GrantItem> = view.grants.iter().filter(uses).collect();
        let tools = |grant: Option<&str>| {
            self.gateway().known_for_policies(grant).tools.unwrap_or_default()
        };
        let mut plan = Plan::default();
        let old = active.map(|active| &*active.policy);
        if grants.is_empty() {
            plan.add(None, &tools(None), old, new, now);
        }
        for grant in grants {
            plan.add(Some(grant), &tools(Some(&grant.label)), old, new, now);
        }
        plan.resets.sort();
        plan.resets.dedup();
        plan
    }
}

impl Control {
    /// What a policy decides about every known tool; with a grant, about those it can reach.
    pub fn decisions(
        &self,
        policy: &Policy,
        grant: Option<&GrantItem>,
        now: Timestamp,
    ) -> Vec<ToolDecision> {
        let known = self.gateway().known_for_policies(grant.map(|grant| grant.label.as_str()));
        let (mut tools, mut seen) = (known.tools.unwrap_or_default(), BTreeSet::new());
        tools.retain(|tool| seen.insert((tool.server.clone(), tool.name.clone())));
        let decide = |tool: KnownTool| {
            let call = call_of(grant, &tool);
            let limits = limits(policy, &call, &UNUSED, now);
            let outlook = Outlook::of(policy, &call, &limits, now);
            ToolDecision { server: tool.server, tool: tool.name, class: tool.class, outlook }
        };
        tools.into_iter().map(decide).collect()
    }
}

/// A call of a tool without arguments.
fn call_of<'a>(grant: Option<&'a GrantItem>, tool: &'a KnownTool) -> Call<'a> {
    let identity = grant.and_then(|grant| {
        let name = grant.identity.as_deref()?;
        Some(Identity { name, groups: &grant.groups })
    });
    let label = grant.map(|grant| grant.label.as_str()).unwrap_or_default();
    Call { grant: label, identity, ..Call::new(&tool.server, &tool.name, tool.class, "{}") }
}

impl Plan {
    fn add(
        &mut self,
        grant: Option<&GrantItem>,
        tools: &[KnownTool],
        old: Option<&Policy>,
        new: &Policy,
        now: Timestamp,
    ) {
        let label = grant.map(|grant| grant.label.as_str()).unwrap_or_default();
        if grant.is_some() {
            self.grants.push(label.to_owned());
        }
        let mut seen = BTreeSet::new();
        for tool in tools.iter().filter(|tool| seen.insert((&tool.server, &tool.name))) {
            self.compared += 1;
            let call = call_of(grant, tool);
            let kept = limits(new, &call, &UNUSED, now);
            let after = Outlook::of(new, &call, &kept, now);
            let before = match old {
                Some(old) => {
                    let had = limits(old, &call, &UNUSED, now);
                    self.resets.extend(lost(&had, &kept));
                    Outlook::of(old, &call, &had, now)
                }
                None => Outlook::no_policy(),
            };
            if !before.is_like(&after) {
                self.differences.push(Difference {
                    grant: label.to_owned(),
                    server: tool.server.clone(),
                    tool: tool.name.clone(),
                    before,
                    after,
                });
            }
        }
    }
}

impl Outlook {
    fn of(policy: &Policy, call: &Call<'_>, limits: &[LimitState], now: Timestamp) -> Self {
        let explained = explain(policy, call, &UNUSED, now);
        let limits = limits.iter().map(|limit| format!("{}/{}", limit.max, limit.window));
        Self {
            effect: explained.effect,
            rule: explained.rule,
            limits: limits.collect(),
            terms: terms(policy, call, now),
        }
    }

    fn no_policy() -> Self {
        let rule = "(no policy)".to_owned();
        Self { effect: Effect::Deny, rule, limits: Vec::new(), terms: Vec::new() }
    }

    /// Whether nothing but the name of the rule differs.
    fn is_like(&self, other: &Self) -> bool {
        (self.effect, &self.limits, &self.terms) == (other.effect, &other.limits, &other.terms)
    }
}

/// The counters of a call that the new policy does not have.
fn lost<'l>(
    had: &'l [LimitState],
    kept: &'l [LimitState],
) -> impl Iterator<Item = CounterReset> + use<'l> {
    let is_kept = |old: &&LimitState| {
        kept.iter().any(|new| new.counter == old.counter && new.window == old.window)
    };
    had.iter()
        .filter(move |old| !is_kept(old))
        .map(|old| CounterReset { counter: old.counter.clone(), window: old.window.clone() })
}

#[cfg(test)]
mod tests {
    use toolgate_policy::Known;

    use super::*;

    fn policy(text: &str) -> Policy {
        Policy::load("p", text, &Known::default()).policy.unwrap()
    }

    fn plan(old: Option<&str>, new: &str) -> Plan {
        let tools = [("files", "read_file", Class::Read), ("files", "drop", Class::Destructive)];
        let tools = tools.map(|(server, name, class)| KnownTool {
            server: server.to_owned(),
            name: name.to_owned(),
            class,
        });
        let mut plan = Plan::default();
        let old = old.map(policy);
        plan.add(None, &tools, old.as_ref(), &policy(new), Timestamp::UNIX_EPOCH);
        plan
    }

    fn shown(plan: &Plan) -> Vec<String> {
        let one = |it: &Difference| {
            format!("{}: {:?} -> {:?}", it.tool, it.before.effect, it.after.effect)
        };
        plan.differences.iter().map(one).collect()
    }

    const OPEN: &str = "version: '1'\ndefault: allow\n";

    #[test]
    fn the_same_document_changes_nothing() {
        let plan = plan(Some(OPEN), "# a comment\nversion: '1'\ndefault: allow\n");
        assert_eq!((plan.differences.len(), plan.resets.len(), plan.compared), (0, 0, 2));
    }

    #[test]
    fn a_decision_that_differs_is_named() {
        let new = "version: '1'\ndefault: allow\ntools: { drop: { action: deny } }\n";
        let plan = plan(Some(OPEN), new);
        assert_eq!(shown(&plan), ["drop: Allow -> Deny"]);
        assert_eq!(plan.differences[0].after.rule, "/tools/drop/action");
    }

    #[test]
    fn a_condition_or_shadow_mode_that_changes_is_a_difference() {
        let condition = "tools: { drop: { deny_if: [{ conditions: [{ path: args.all, op: eq, value: true }] }] } }\n";
        let found = plan(Some(OPEN), &format!("{OPEN}{condition}"));
        assert_eq!(shown(&found), ["drop: Allow -> Allow"]);
        assert_eq!(found.differences[0].after.terms, ["deny_if args.all eq true"]);
        let closed = "version: '1'\ndefault: deny\n";
        let found = plan(Some(&format!("{closed}mode: shadow\n")), closed);
        assert_eq!(shown(&found), ["read_file: Deny -> Deny", "drop: Deny -> Deny"]);
        assert_eq!(found.differences[0].before.terms, ["shadow"]);
    }

    #[test]
    fn without_a_policy_everything_is_denied_before() {
        assert_eq!(shown(&plan(None, OPEN)), ["read_file: Deny -> Allow", "drop: Deny -> Allow"]);
    }

    #[test]
    fn a_limit_that_changes_is_a_difference_and_a_renamed_counter_starts_again() {
        let of = |counter: &str, max: u32| {
            format!(
                "version: '1'\ndefault: allow\ntools:\n  drop:\n    limits: [{{ counter: {counter}, window: minute, max: {max} }}]\n"
            )
        };
        let more = plan(Some(&of("a", 1)), &of("a", 2));
        assert_eq!(more.differences[0].after.limits, ["2/minute"]);
        assert!(more.resets.is_empty());
        let renamed = plan(Some(&of("a", 1)), &of("b", 1));
        assert!(renamed.differences.is_empty(), "{renamed:?}");
        let reset = CounterReset { counter: "a".to_owned(), window: "minute".to_owned() };
        assert_eq!(renamed.resets, [reset]);
    }
}
