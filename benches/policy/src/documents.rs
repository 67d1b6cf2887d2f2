//! Documents of every size, made.

/// One entry with six conditions that a call must meet.
pub const SIX: &str = r#"    require:
      - conditions:
          - { path: args.amount, op: lte, value: 10000 }
          - { path: args.currency, op: in, value: [EUR, USD, GBP] }
          - { path: args.customer.country, op: neq, value: KP }
          - { path: args.reason, op: exists, value: true }
          - { path: args.customer.id, op: starts_with, value: cus_ }
          - { path: args.attachment, op: ends_with, value: .pdf }
"#;

const HEAD: &str = "version: \"1\"\ndefault: deny\ntools:\n";

/// One tool, six conditions.
pub fn six() -> String {
    format!("{HEAD}  create_charge:\n{SIX}")
}

/// `create_charge` with its six conditions among this many tools, each with a limit.
pub fn tools(count: usize) -> String {
    let mut document = six();
    for at in 1..count {
        document.push_str(&format!("  {}: {{ rate_limit: 30/minute }}\n", tool(at)));
    }
    document
}

/// The name of one of the other tools.
pub fn tool(at: usize) -> String {
    format!("update_record_{at}")
}

/// This many tools, each with a predicate and a limit.
pub fn tools_with_rules(count: usize) -> String {
    let mut document = HEAD.to_owned();
    for at in 0..count {
        document.push_str(&format!(
            "  {}:\n    deny_if: [{{ conditions: [{{ path: args.amount, op: gt, value: {at} }}] }}]\n    rate_limit: 30/minute\n",
            tool(at)
        ));
    }
    document
}

/// This many rules (predicates that deny) over a tenth as many tools.
pub fn rules(count: usize) -> String {
    let mut document = HEAD.to_owned();
    for at in 0..count {
        if at % 10 == 0 {
            document.push_str(&format!("  {}:\n    deny_if:\n", tool(at)));
        }
        document.push_str(&format!(
            "      - conditions: [{{ path: args.field_{at}, op: gt, value: {at} }}, {{ path: args.kind, op: in, value: [a, b] }}]\n        on_deny: field {at} is too large\n"
        ));
    }
    document
}
