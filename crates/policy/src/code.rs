//! The stable codes of problems. A code never changes its meaning and is never used again.
//!
//! Each code has a failing example under `tests/codes/`, which the tests run and from which
//! `docs/reference/policy-errors.md` is generated.

use serde::{Serialize, Serializer};

/// How bad a problem is: an error refuses the document, a warning does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// The document can be used, but probably does not mean what its author meant.
    Warning,
}

macro_rules! codes {
    ($($number:literal $name:ident $severity:ident $title:literal $advice:literal;)+) => {
        /// What kind of problem it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $title] $name,)+
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// `TG0001`…
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $number,)+ }
            }

            /// What it is about, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// Why it is a problem and what to do.
            pub fn advice(self) -> &'static str {
                match self { $(Code::$name => $advice,)+ }
            }

            /// Whether it refuses the document.
            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)+ }
            }
        }
    };
}

codes! {
    "TG0001" Syntax Error "not valid YAML or JSON"
        "The text cannot be parsed, so nothing after this place was checked.";
    "TG0002" TooLarge Error "too large or too deep"
        "Documents are limited to 4 MiB and 64 levels, so that parsing is always fast.";
    "TG0003" Unsupported Error "a YAML feature outside the language"
        "Anchors, aliases, tags and several documents in one file would hide the meaning of a rule.";
    "TG0004" DuplicateKey Error "a duplicate key"
        "Parsers disagree about which of the two applies, so the document is rejected.";
    "TG0005" UnknownKey Error "an unknown key"
        "A misspelt key would silently protect nothing.";
    "TG0006" WrongType Error "a value of the wrong type"
        "The value does not have the type that this key requires.";
    "TG0007" MissingKey Error "a required key is missing"
        "Without this key the entry has no meaning.";
    "TG0008" UnknownWord Error "an unknown value"
        "This key accepts only a few values.";
    "TG0009" Version Error "an unsupported version"
        "This is version `\"1\"` of the language; write it as a string.";
    "TG0010" NoDefault Error "no `default`"
        "A document must state the decision for tools that no entry names. In Intercept, a missing `default` means `allow`.";
    "TG0011" Number Error "an ambiguous number"
        "Parsers read `010`, `0x1F`, `1_000` and `.inf` differently.";
    "TG0012" Timezone Error "an unknown time zone"
        "Time zones are IANA names such as `Europe/Moscow`.";
    "TG0013" Date Error "not a date"
        "Dates are written `YYYY-MM-DD` and mean 00:00 UTC of that day.";
    "TG0014" Duration Error "not a duration or window"
        "Durations are a number and one of `s`, `m`, `h`, `d`; windows may also be `minute`, `hour`, `day` or a number of seconds.";
    "TG0015" RateLimit Error "not a rate limit"
        "A rate limit is `\"30/minute\"` or `{ max: 30, window: minute }`.";
    "TG0016" Range Error "a number out of range"
        "The number cannot be used here.";
    "TG0017" EmptyName Error "an empty name or glob"
        "An empty name matches nothing.";
    "TG0018" BadGlob Error "not a glob"
        "Globs support `*`, `?`, `[abc]`, `[a-z]`, `[!a]` and `\\`, but not `{}` and `**`.";
    "TG0019" DuplicateHide Error "a duplicate `hide` entry"
        "One of the two was probably meant for another tool.";
    "TG0020" BadPath Error "not a path"
        "A path is `args.` and names joined by dots, with `[0]`, `[any]` or `[all]` for lists, or one of the known facts of a call.";
    "TG0021" UnknownOperator Error "an unknown operator"
        "A condition with an unknown operator cannot be evaluated.";
    "TG0022" BadOperand Error "a value that does not fit its operator"
        "The condition could never be evaluated.";
    "TG0023" BadRegex Error "not a regular expression"
        "Patterns are linear-time (no look-around, no back-references) and limited in size.";
    "TG0024" TooManyRegexes Error "too many regular expressions"
        "A document may contain 1,000 of them, so that loading stays fast.";
    "TG0025" BadPredicate Error "not a predicate"
        "A predicate has exactly one of `conditions`, `any` and `not`.";
    "TG0026" DuplicateCounter Error "a duplicate counter in one entry"
        "Two limits with one name would share one count.";
    "TG0027" GlobalDiffers Error "uses of a global counter disagree"
        "All uses of one counter need the same window, scope and algorithm.";
    "TG0028" BadCounter Error "not a counter name"
        "A counter name must not be empty, may contain only `{tool}` in braces, and needs a name after `global.`.";
    "TG0029" SlidingMax Error "too much for a sliding window"
        "A sliding window stores every call of the window, so `max` is at most 10,000.";
    "TG0030" TwoIncrements Error "both `increment` and `increment_from`"
        "A call adds either a fixed amount or an argument's value.";
    "TG0031" HiddenWithLimits Error "limits on a hidden tool"
        "`hide` covers this key, so its limits could never be reached; one of the two is a mistake.";
    "TG0032" Contradiction Error "keys that contradict each other"
        "Together these keys have no sensible meaning.";
    "TG0033" ShadowUntil Error "`shadow_until` without shadow"
        "An end date has a meaning only with `mode: shadow`.";
    "TG0034" BadOwnership Error "not a `yields` or `ends`"
        "`yields` takes kinds and `result.…` paths, `ends` kinds and `args.…` paths.";
    "TG0035" RuleName Error "a rule without a name"
        "Intercept rules are named in denials, so each needs a name.";
    "TG0036" BadRule Error "an invalid Intercept rule"
        "The keys of this rule cannot be combined in Intercept.";
    "TG0037" UncountedState Error "a counter that never counts"
        "Without an `lt` or `lte` condition on its own counter, Intercept neither checks nor increments it.";
    "TG0038" UnknownState Error "a state path without its state block"
        "The condition reads a counter that no rule of the document increments.";
    "TG0039" DuplicateState Error "a duplicate state counter"
        "Two rules of one tool would count into the same counter.";
    "TG0040" Misplaced Error "a misplaced key"
        "The key is part of the language, but not at this level.";
    "TG0041" BadTest Error "a test that cannot be run"
        "A test has a `call` and the verdict to `expect`.";
    "TG0042" Spend Error "`spend` is not supported"
        "toolgate does not read prices from answers, so it cannot enforce a budget; limit the argument that carries the amount with `increment_from`.";
    "TG0043" UnknownClass Error "an unknown risk class"
        "Classes are `read`, `write`, `execute`, `destructive`, `financial`, `other`.";
    "TG0044" BadHost Error "not a host name"
        "`host_in` takes bare host names, without scheme, port, path or wildcard.";
    "TG0045" UncoveredMethod Error "a method that `methods` does not decide"
        "Tools, resources and prompts have their own sections, and some messages need no permission, so this entry would deny nothing.";

    "TG0101" NoEffect Warning "an entry without effect"
        "A stricter entry covers the same tools. The strictest entry wins, so this one cannot make an exception.";
    "TG0102" Unreachable Warning "a rule that can never apply"
        "Another rule in the same entry always decides first.";
    "TG0103" UnknownTool Warning "a tool that no known server has"
        "No connected server lists a tool of this name; a misspelt key protects nothing.";
    "TG0104" DestructiveGlob Warning "a glob that opens destructive tools"
        "The glob allows tools of a dangerous class, including those that a server adds later.";
    "TG0105" Unanchored Warning "an unanchored regex as an allow-list"
        "`regex` finds its pattern anywhere in the text, so text around it passes too.";
    "TG0106" ClientName Warning "`client.name` is not authenticated"
        "A client can send any name; do not base access control on it.";
    "TG0107" SessionScope Warning "a limit that a reconnect refills"
        "An agent session starts at zero, so a new one has the whole limit again.";
    "TG0108" NeverTrue Warning "a constant condition"
        "The condition does not depend on the call.";
    "TG0109" ZeroMax Warning "a limit of zero"
        "Nothing is ever admitted; `action: deny` is clearer.";
    "TG0110" NothingNamed Warning "a key that names no tool"
        "Under `default: deny`, a key without a literal character applies to tools but never allows one.";
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
