//! The built-in policy: reading is open, writing is limited, the rest asks a person.

/// The document of the policy `recommended`.
pub const RECOMMENDED: &str = "\
version: \"1\"
default: deny
resources: { default: allow }
prompts: { default: allow }
classes:
  read: { action: allow }
  other: { action: allow, rate_limit: 60/minute }
  write: { action: allow, rate_limit: 30/minute }
  execute: { action: allow, approve: {} }
  destructive: { action: allow, approve: {} }
  financial: { action: allow, approve: {} }
";
