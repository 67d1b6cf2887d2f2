# Frame
skip = Skip to content
copied = Copied
nav-label = Main
nav-overview = Overview
nav-approvals = Approvals
nav-servers = Servers
nav-tools = Tools
nav-policies = Policies
nav-grants = Grants
nav-people = People
nav-sessions = Sessions
nav-audit = Audit
nav-catalog = Catalogue
mode-label = Mode
mode-what = Who may call, and whether rules are enforced
mode-local = local: no token needed
mode-shadow = shadow
mode-some-shadow = { $n ->
    [one] 1 policy in shadow
   *[other] { $n } policies in shadow
}
mode-enforce = enforcing
mode-closed = closed: no grant
freeze-all = Freeze everything
unfreeze-all = Unfreeze everything
unfreeze = Unfreeze
freeze = Freeze
frozen = frozen
menu-person = Account
language = Language
theme = Theme
theme-light = Light
theme-dark = Dark
sign-out = Sign out
banner-frozen-all = Everything is frozen: no agent can call anything.
banner-frozen-grant = The grant “{ $value }” is frozen.
banner-frozen-server = The server “{ $value }” is frozen.
banner-frozen-session = The session “{ $value }” is frozen.
banner-reload = The last change of toolgate.yaml was rejected; the previous configuration is active.
banner-not-recorded = The audit is off: calls are not recorded.
banner-broken-policy = The policy “{ $value }” cannot be used; its grants are denied every call.
banner-conflict = Two programs use the session id “{ $value }”.
banner-no-policy = The grant “{ $value }” has no policy, so every call is denied.

# Sign-in
login-title = Sign in
login-what = Use your personal token. The token of the first administrator is in the file admin.token of the data folder.
login-token = Token
login-button = Sign in
login-hint = On the machine that runs toolgate, this command signs you in:
login-wrong = This token is not valid. It may have been revoked, replaced or expired.
login-as = Sign in as { $value }
login-link-what = This link works once. Confirm that you opened it yourself.
login-link-ended = This link has ended. Links work once, for 60 seconds.
again-title = Opening the page
again-open = Open
problem-signed-out = You are signed out
problem-forged = This form was not accepted; open the page again and repeat
problem-too-large = The request is too large or too slow
problem-not-found = There is no such page
problem-refused = This was not done
problem-internal = Internal error in toolgate; please report it

# Words
all = all
none = none
never = never
never-used = never used
ago = { $value } ago
active = active
revoked = revoked
expired = expired
file = file
file-what = Defined in toolgate.yaml; change it there
built-in = built in
required = required
you = (you)
create = Create
save = Save
cancel = Cancel
remove = Remove
test = Test
rotate = Rotate
revoke = Revoke
restore = Restore
attach = Attach
copy = Copy
search = Search
filter = Filter
filter-reset = Reset
actions = Actions
approve = Approve
deny = Deny
rotate-sure = Replace the token of “{ $value }”? The old one stops working at once.
revoke-sure = Revoke “{ $value }”? Its token stops working at once.
span-seconds = { $n } s
span-minutes = { $n } min
span-hours = { $n } h

# Fields
field-name = Name
field-label = Label
field-policy = Policy
field-policies = Policies
field-hash = Hash of the meaning
field-identity = Identity
field-person = Person
field-client = Client
field-via = Through
field-session = Session
field-class = Risk class
field-level = Level
field-approval = Approval
field-grant = Grant
field-server = Server
field-tool = Tool
field-state = State
field-decision = Decision
field-rule = Rule
field-code = Error code
field-outcome = Outcome
field-effect = Effect
field-counters = Counters
field-argument-names = Argument names
field-arguments = Arguments
field-upstream = Server time
field-total = Total time
field-message = Message
field-count = Count
field-time = Time
field-kind = Kind
field-who = Who
field-what = What
field-detail = Detail
field-roles = Roles
field-groups = Groups
field-expires = Expires
field-last-use = Last use
field-created = Created
field-version = Version
field-base = Infobase
field-host = Host
field-queue = Queue
field-in-flight = In flight
field-last-answer = Last answer
field-agent-sessions = Agent sessions
field-open-calls = Calls in flight
field-uptime = Up for
field-fingerprint = Fingerprint
field-digest = Digest
all-classes = All classes
all-servers = All servers
all-states = All states
all-kinds = All kinds
all-decisions = All decisions

# Risk
class-read = read
class-write = write
class-execute = execute
class-destructive = destructive
class-financial = financial
class-other = other
class-read-what = Returns data and changes nothing.
class-write-what = Creates or changes something.
class-execute-what = Runs code, commands or queries.
class-destructive-what = Deletes something that does not come back.
class-financial-what = Moves money, or creates a duty to pay.
class-other-what = Its definition does not say what it does.
level-low = low risk
level-medium = medium risk
level-high = high risk
level-critical = critical risk
label-reads-private = reads private data
label-ingests-untrusted = takes in text of strangers
label-sends-out = sends data out
effect-allow = allowed
effect-hold = asks a person
effect-deny = denied
effect-hide = hidden
decision-allow = allowed
decision-deny = denied
decision-hide = hidden
decision-hold = held
decision-shadow-deny = would be denied
decision-shadow-hold = would be held
kind-intent = call
kind-outcome = outcome
kind-denied = denial
kind-held = held
kind-approval = approval
kind-refused = refused access
kind-admin = change
kind-policy = policy
kind-session = session
kind-drift = drift
story-intent = The call was admitted
story-outcome = The call ended
story-denied = The call was refused; nothing was sent
story-held = The call waits for a person
story-approval = A person answered
story-refused = Access was refused
story-admin = A person changed something
story-policy = A policy became active
story-session = A session event
story-drift = A definition changed
state-ready = ready
state-starting = starting
state-failed = failed
state-backing_off = waiting after a failure
state-never_used = not used yet
session-active = connected
session-disconnected = disconnected
session-anonymous = not registered
session-conflict = two programs, one id
tool-listed = listed
tool-quarantined = quarantined
approval-pending = pending
approval-approved = approved
approval-denied = denied
approval-expired = expired
approval-consumed = used

# Overview
overview-state = State
overview-cut = There are more calls than this page reads: the charts show the newest 8,000 rows.
tile-calls = Calls
tile-last-hour = in the last hour
tile-denied = Denied
tile-denied-show = Show denials
tile-pending = Pending approvals
tile-pending-show = Open the inbox
tile-audit = Audit rows
tile-checkpoint = signed up to { $value },
tile-no-checkpoint = no checkpoint yet
chart-calls = Calls per minute
chart-calls-what = Calls per minute in the last hour, by decision; the scale ends at { $n }
chart-empty = No calls in the last hour. Connect an agent to
chart-latency = Latency
chart-latency-empty = No call ended in the last hour. The times appear with the first answer.
chart-hour-ago = 60 min ago
chart-now = now
top-tools = Most used tools
top-tools-empty = The tools that agents call most appear here.
top-denials = Most frequent denials
top-denials-empty = No denials in the last hour. What a policy refuses appears here.
policy-broken = cannot be used
overview-no-sessions = No program has dialled in.

# Servers
servers-empty = No servers yet.
servers-empty-long = No servers yet. Add one below, or run toolgate import with the configuration of your MCP client.
servers-add = Add a server
servers-command = Command, URL, or an entry of mcpServers
servers-look = Look before adding
servers-confirm = Add this server
servers-preview = Add the server “{ $value }”?
servers-secrets = Secrets only as references:
servers-remove-sure = Remove the server “{ $value }”?
servers-not-listed = never listed; test it
servers-no-command = give a command or a URL
servers-bad-entry = this is not a JSON object
servers-bad-quotes = a quote is not closed

# Tools
tools-search = Name of a tool or server
tools-empty = No tools yet: a server has to be listed first.
tools-no-match = No tool matches.
tools-unlisted = Not listed yet: { $value }
tool-what = What it does
tool-no-description = Its server gives no description. Judge it by its parameters, or deny it.
tool-parameters = Parameters
tool-why = Risk, and why
tool-confidence = confidence { $value }
tool-loop = What could go wrong
tool-recommended = Recommended rule
tool-apply = Apply to policy…
tool-who-quarantined = No agent, while the definition is quarantined. Once it is approved:
tool-who = Who may call it now
tool-no-callers = No grant exists.
tool-recent = Recent calls
tool-no-calls = It was not called yet. Connect an agent, or try it above.
tool-definition = Definition
quarantine-what = This definition is new or has changed since it was approved. Agents neither see it nor can call it.
quarantine-approve = Approve this definition
try-title = Try it
try-what = The call passes the policy of the grant, takes its counters and is recorded with your name.
try-as = With the rights of the grant
try-no-grant = No grant exists to call with.
try-call = Call
try-raw = Raw messages
try-request = Request
try-answer = Answer
try-allowed = allowed
try-tool-error = the tool failed
try-not-json = the value of “{ $value }” is not valid JSON

# Grants and people
grants-empty = No grants yet. A grant is the key of one agent; the first one ends local mode.
grants-create = Create a grant
grants-policy-none = none: every call is denied
grants-servers = Servers it may reach (none chosen: all)
grants-no-policy = No policy: every call is denied.
grants-no-tools = No known tool is in its reach. Add a server, or test one.
grants-at-most = At most, an agent with it can use:
grants-enforced = Once it is enforced:
grants-shadow = Its policy is in shadow mode: calls are recorded and pass, whatever the rules say.
people-create = Add a person
people-only-admin = Give every person an own token, so that the audit names who did what.
role-viewer = viewer
role-approver = approver
role-policy-manager = policy manager
role-admin = administrator
role-viewer-what = may look
role-approver-what = also answers approvals
role-policy-manager-what = also changes policies and attaches them
role-admin-what = may do everything
token-title = New token
token-of = The token of “{ $value }”
token-once = This token is shown once. Copy it now.
token-kept = I have copied it
token-clients = Ready to paste

# Sessions
sessions-empty = No program has dialled in. Programs connect to this address:
sessions-address = Programs connect to
sessions-why = Why is my base not visible?
sessions-why-1 = The program has not connected: compare the address in its settings with
sessions-why-2 = It connected and did not register: then it is listed above as “not registered”. Update the extension.
sessions-why-3 = Its token is wrong: the audit has rows of the kind “session” with the reason.
sessions-why-4 = The grant of your agent does not reach it: look at “Sessions” of the grant.
sessions-why-5 = The policy hides or denies its tools: open a tool and look at “Who may call it now”.

# Audit
audit-empty = Nothing is recorded yet. Calls, refusals and changes appear here as they happen.
audit-no-match = No row matches the filters.
audit-older = Older rows
audit-story = (story of the call)
call-hashes = Hashes of the rows
audit-proof = Proof
audit-proof-what = Every row carries the hash of the row before it, and checkpoints are signed. An export has the rows of the filters above.
audit-verify = Verify the audit
audit-export = Export
audit-intact = The audit is intact: { $value } rows; signed up to row { $signed }.
audit-broken = the audit is broken at row { $value }; run `toolgate audit verify` for the reason

# Policies
policies-create = Create a policy
policies-create-what = A new policy starts as a copy of “recommended”.
policy-no-grant = No grant uses this policy. Attach it under Grants.
policy-grants = Used by: { $value }
policy-of-file = This policy is in toolgate.yaml or a file of its own, and is changed there. You can try changes here and save them under another name.
policy-built-in = This policy is built in. You can try changes here and save them under another name.
policy-document = Document
policy-save-as = Save as…
policy-save-copy = Save as
policy-versions = Versions
policy-compare = Compare with the active one
policy-at-line = Line { $n }:
policy-rollback = Roll back
policy-remove-sure = Remove the policy “{ $value }”?
draft-problems = Problems
draft-invalid = This document cannot be saved
draft-warnings = Warnings
draft-changes = What would change
draft-before = Now
draft-after = With this draft
draft-resets = Counters that start again: { $value }
builder-title = Builder
builder-classes = By risk class
builder-tools = By tool
builder-sentences = In words
builder-line = line { $n }
builder-needs-script = Choosing effects here needs JavaScript. Without it, edit the document.
pick-allow = Allow
pick-limit = Limit
pick-ask = Ask
pick-deny = Deny
pick-hide = Hide
pick-inherit = Remove this entry
condition = Condition
condition-add = Add a condition
condition-edit = Edit
condition-nested = edit it in the document
condition-list = What happens
condition-deny-if = Deny if
condition-approve-if = Ask if
condition-require = Only if
condition-path = Field
condition-op = Comparison
condition-exists = is given (true or false)
condition-value = Value
condition-apply = Apply
pick-max = Most calls of { $value }
pick-window = Window of { $value }
per-minute = per minute
per-hour = per hour
per-day = per day
pick-sum = sum of { $value }
per-other = per { $value }

# Sentences
say-default-allow = Tools that no rule names are allowed.
say-default-deny = Tools that no rule names are denied.
say-shadow = The rules are only recorded: every call passes.
say-hidden = { $value } is hidden: agents do not see it.
say-all-tools = Every tool
say-class = Tools of the class { $value }
say-may = { $value } may be called
say-denied = { $value } is denied
say-hidden-one = { $value } is hidden
say-held = { $value } waits for a person
say-sum = in sum at most { $value } of { $path } { $window }
say-require = only if { $value }
say-deny-if = denied if { $value }
say-approve-if = a person decides if { $value }
say-concurrency = at most { $value } at the same time
say-repeat = not the same call again within { $value }
say-owned = only with ids that belong to the caller
say-shadow-entry = this rule is only recorded
say-others = and: { $value }
say-loop = An agent may repeat the same call at most { $value } times { $window }.
say-or = { " or " }
say-and = { " and " }
say-not = not ({ $value })
say-always = always
op-exists = { $value } is given
op-missing = { $value } is missing
op-in = is one of
op-not-in = is not one of
op-contains = contains
op-starts-with = starts with
op-ends-with = ends with
op-regex = matches (anywhere)
op-matches = matches
op-host-in = has a host of
op-owned = belongs to the caller as
window-minute = a minute
window-hour = an hour
window-day = a day
window-seconds = in { $value } seconds

# Approvals
approvals-empty = Nothing waits for you. Calls that a policy holds appear here.
approvals-earlier = Earlier
approval-asks = The grant “{ $value }” wants to call it. Held by
approval-left = { $value } left
approval-reason = Reason, shown to the agent
approval-erased = The arguments were erased when the approval ended.

# Catalogue
catalog-search = Server, tool, package or attack pattern
catalog-patterns = Attack patterns
catalog-no-match = Nothing matches.
catalog-stops = What stops it:
catalog-classes = Risk classes
catalog-recommended = The policy “recommended”
attack-confused-deputy = Confused deputy
attack-confused-deputy-what = The tool acts with rights that its caller does not have, so an injected instruction borrows them.
attack-confused-deputy-stops = One grant per agent with the fewest servers, and conditions on arguments.
attack-runaway-loop = Runaway loop
attack-runaway-loop-what = An agent repeats a call without end.
attack-runaway-loop-stops = Limits, the loop rule, and refusals that tell the model to stop.
attack-rug-pull = Rug pull
attack-rug-pull-what = A definition changes after it was approved.
attack-rug-pull-stops = Pinned definitions: a changed one is quarantined until a person approves it.
attack-tool-poisoning = Tool poisoning
attack-tool-poisoning-what = A description instructs the model to do something else.
attack-tool-poisoning-stops = Signals in the risk assessment, deny by default, approvals for critical classes.
attack-shadowing = Shadowing
attack-shadowing-what = Two servers offer the same or a confusable name.
attack-shadowing-stops = Names carry the server's prefix, and confusable names are reported.
attack-lethal-trifecta = Lethal trifecta
attack-lethal-trifecta-what = Private data, text of strangers and a way out meet in one agent.
attack-lethal-trifecta-stops = Give one agent at most two of the three, or ask a person before data leaves.
attack-hidden-text = Hidden text
attack-hidden-text-what = A definition holds characters that people do not see.
attack-hidden-text-stops = Hidden characters are drawn everywhere, and such definitions are quarantined.
attack-schema-smuggling = Schema smuggling
attack-schema-smuggling-what = Arguments carry what the schema does not describe.
attack-schema-smuggling-stops = Ambiguous JSON is rejected, and rules read exactly what the server reads.
attack-closing-what-is-not-yours = Closing what is not yours
attack-closing-what-is-not-yours-what = A caller ends a session or job that belongs to another.
attack-closing-what-is-not-yours-stops = Ownership rules: only ids that the same grant received.

# Done
done-frozen = Frozen. Calls are refused from now on.
done-unfrozen = The freeze has ended.
done-server-added = The server “{ $value }” was added.
done-server-removed = The server “{ $value }” was removed.
done-server-answered = The server answered. Tools of { $value }
done-server-failed = The server did not answer. { $value }
done-revoked = Revoked. The token no longer works.
done-restored = Restored.
done-attached = The policy was attached.
done-policy-created = The policy “{ $value }” was created. Edit it and save.
done-policy-saved = The policy “{ $value }” was saved and is active.
done-policy-removed = The policy was removed.
done-rolled-back = The document of version { $value } is active again.
done-definition-approved = The definition of “{ $value }” was approved.
done-approved = Approved.
done-denied = Denied.

# Signals
signal-verb = `{ $value }` is a verb of class { $class }
signal-negated = `{ $value }` is negated
signal-vague = the effect of `{ $value }` depends on its object
signal-money = `{ $value }` with money as its object
signal-runs-code = `{ $value }` with code as its object
signal-any-query = runs queries, and does not state that they only read
signal-read-query = states that its queries only read
signal-lost = states that something is lost
signal-report = named after what it reports
signal-no-description = there is no description
signal-no-verb = no known verb
signal-disagree = name and description imply different classes
signal-asks = asks that a person decides first
signal-path = takes a path of a file system
signal-url = takes a URL
signal-amount = takes an amount of money
signal-code = takes code or a command
signal-query = takes a query
signal-recipient = takes a recipient
signal-operation = can select an operation of class { $value }
signal-switch = a switch of class { $value }
signal-declared-destructive = declares itself destructive
signal-declared-writing = declares that it does not only read
signal-declared-read-only = declares itself read-only, which does not lower the class
signal-curated = known tool of 1C programs, class { $value }
signal-configured = configured class { $value }
place-name = name
place-title = title
place-description = description
place-argument = argument { $value }
place-annotations = annotations
place-toolgate = toolgate
hazard-read = `{ $tool }` of { $server } shows the agent whatever { $arguments } { $count ->
        [1] selects
       *[other] select
    }, also what the task does not need.
hazard-read-without-arguments = `{ $tool }` of { $server } takes no arguments, so a policy can only allow or deny all that it shows.
hazard-write = A wrong or injected value in { $arguments } makes `{ $tool }` of { $server } change the wrong thing, and a loop repeats the mistake.
hazard-write-without-arguments = Called at the wrong moment or in a loop, `{ $tool }` of { $server } changes what should have stayed.
hazard-execute = `{ $tool }` of { $server } runs what { $arguments } { $count ->
        [1] contains
       *[other] contain
    }, with the rights of the server: a text that instructs the agent decides what is run.
hazard-execute-without-arguments = Every call of `{ $tool }` of { $server } starts something with the rights of the server.
hazard-destructive-declared = { $server } itself declares `{ $tool }` destructive: take a wrong or injected value in { $arguments } for a loss that cannot be undone.
hazard-destructive-declared-without-arguments = { $server } itself declares `{ $tool }` destructive: take every call for a loss that cannot be undone.
hazard-destructive = `{ $tool }` of { $server } destroys what { $arguments } { $count ->
        [1] selects
       *[other] select
    }. After a wrong or injected value it does not come back.
hazard-destructive-without-arguments = `{ $tool }` of { $server } destroys data, and takes no argument that a rule could check.
hazard-financial = `{ $tool }` of { $server } moves money or creates a duty to pay, as { $arguments } { $count ->
        [1] states
       *[other] state
    }. A wrong recipient or a repeated call costs money.
hazard-financial-without-arguments = Every call of `{ $tool }` of { $server } moves money or creates a duty to pay.
hazard-other = The definition of `{ $tool }` of { $server } does not tell what it does with { $arguments }. It may do more than its name suggests.
hazard-other-without-arguments = The definition of `{ $tool }` of { $server } does not tell what it does. It may do more than its name suggests.
hazard-others = { $value } and others
hazard-path-read = `{ $value }` can name any file that the server may read, also keys.
hazard-path = `{ $value }` can name a file outside the folder that was meant.
hazard-url = `{ $value }` can point into the internal network, and carry data in itself.
hazard-amount = `{ $value }` has no upper bound but the policy's.
hazard-code = `{ $value }` is executed as it is.
hazard-query = `{ $value }` can ask for more than the task needs.
hazard-recipient = `{ $value }` can name a stranger.
hazard-reads-private = Private data in its result is then in the agent's context.
hazard-ingests-untrusted = Its result can hold text of strangers, which can instruct the agent.
hazard-sends-out = It can carry data out of the organisation.
hazard-asks = Its server asks that a person decides first.

# Review and approval
quarantine-changed = The definition has changed since it was approved.
quarantine-not-approved = No person has approved this definition.
quarantine-hidden = The definition holds hidden text.
quarantine-new = The tool is new, of a dangerous class, and no person has approved it.
quarantine-diff = What changed
quarantine-no-before = There is no earlier definition to compare with; the whole one is at the end of this page.
quarantine-risk = Risk class:
quarantine-rejected = Rejected by { $value }. It stays quarantined until a definition is approved.
quarantine-reject = Reject
undo-read = It changes nothing.
undo-write = A later call can usually change it back.
undo-execute = Unknown: it runs code or commands.
undo-destructive = No: it deletes or ends something.
undo-financial = No: it moves money.
undo-other = Unknown.
approval-undo = Can it be undone?
approval-who = Who may answer
approval-any-approver = any approver
approval-groups = from { $value }
approval-expires = Expires
approval-after = Counters after approval
approval-no-limits = The call takes no counter. A limit in the policy would bound such calls.
approval-spent = spent: the call would be refused
approval-differs = Compared with the last approved call
approval-differs-same = The arguments are the same.
approval-first = No similar call was approved before. Check every argument.
approval-added = New arguments
approval-removed = Missing arguments
approval-changed = Other values
approval-recent = Recent calls of this grant
approval-answers = Answers so far
approval-said-approve = approved
approval-said-deny = denied
approval-note = Note of the policy
approval-similar = Also let similar calls pass
approval-similar-no = no, only this call
approval-similar-15m = for 15 minutes
approval-similar-1h = for 1 hour
approval-similar-8h = for 8 hours
approval-keep = Arguments that must stay equal (none chosen: all)
approval-look = Open
standing-title = Standing exceptions
standing-what = Similar calls pass without a question until the exception ends.
standing-keep = Equal arguments
standing-end = End
done-standing-ended = The exception has ended; such calls are held again.
done-definition-rejected = The definition of “{ $value }” was rejected. It stays quarantined.

# Shadow
policy-to-paste = What to change in the file
policy-to-paste-what = The policy is in a file. These lines differ:
policy-applied = The draft below has the recommended rule for { $value }. Look at what would change, then save.
shadow-title = Shadow mode: nothing is refused yet
shadow-what = These calls passed. Enforced, the policy would have refused or held them.
shadow-since = since
shadow-nothing = No call would have been refused or held. The policy is ready to be enforced.
shadow-cut = There are more rows; the newest 1,000 of each decision are counted.
shadow-enforce = Enforce this policy
shadow-not-edited = the document cannot be edited here; remove `mode: shadow` in the document
done-enforced = The policy “{ $value }” is enforced.

# Trifecta
trifecta-yes = Lethal trifecta: this agent can read private data, take in text of strangers and send data out.
trifecta-no = No lethal trifecta.
trifecta-how = Remove one of the three, or ask a person before data leaves.
grants-most-limits = Limits

# Servers and catalogue
servers-offers = Its tools
servers-offers-none = It has no tools. Check the command, or cancel.
servers-no-answer = It did not answer, so its tools are unknown: { $value }
servers-hidden = hidden text
servers-ran = toolgate started this once to list its tools, and ended it:
servers-log = Last lines of its stderr
servers-pin = New and changed definitions
servers-pin-first = first: a changed one waits for a person
servers-pin-strict = strict: every one waits for a person
servers-pin-off = off: changes are only recorded
field-pin = Pin
field-labels = Data
catalog-servers = Shipped servers
catalog-policy = Recommended policy
catalog-scanned = scanned { $value }

# Search and diagnosis
why-base = Name of the base, or a session id
why-any-grant = For any agent
why-check = Check
why-all = All reasons
why-events = The newest messages about sessions:
why-not-connected = No program with a base “{ $value }” is connected. Compare the address in its settings with the one above, and start it.
why-conflict = “{ $value }”: two programs use its session id. Give each its own client_uid.
why-connected = “{ $value }” is connected.
why-disconnected = “{ $value }” was here and is disconnected. It returns when its program connects again.
why-no-tools = “{ $value }” publishes no tools. Check its extension.
why-frozen = “{ $value }” is frozen. End the freeze.
why-expired = The grant “{ $value }” has expired. Create another one.
why-reached = The grant may reach “{ $value }”.
why-not-reached = The grant may not reach “{ $value }”: change its “Sessions”.
why-no-policy = The grant “{ $value }” has no policy, so every call is denied. Attach one.
why-nothing-in-reach = No tool of a session is in reach of the grant “{ $value }”.
audit-search = Text in a row: name, id, message
age-any = Any time
age-15m = Last 15 minutes
age-1h = Last hour
age-24h = Last 24 hours
age-7d = Last 7 days

# With numbers
count-tools =
    { $n ->
        [one] { $n } tool
       *[other] { $n } tools
    }
count-running =
    { $n ->
        [one] { $n } process or connection
       *[other] { $n } processes or connections
    }
span-days =
    { $n ->
        [one] { $n } day
       *[other] { $n } days
    }
banner-pending =
    { $n ->
        [one] { $n } call waits for a person.
       *[other] { $n } calls wait for a person.
    }
banner-more =
    { $n ->
        [one] { $n } more thing needs a person.
       *[other] { $n } more things need a person.
    }
login-wait =
    { $n ->
        [one] Too many wrong tokens from this address. Wait { $n } second.
       *[other] Too many wrong tokens from this address. Wait { $n } seconds.
    }
tool-hidden =
    { $n ->
        [one] Its definition holds { $n } character or word that people do not see or may confuse.
       *[other] Its definition holds { $n } characters or words that people do not see or may confuse.
    }
draft-no-change =
    { $n ->
        [one] No decision changes: { $n } decision compared.
       *[other] No decision changes: { $n } decisions compared.
    }
say-limit =
    { $n ->
        [one] at most once { $window }
       *[other] at most { $n } times { $window }
    }
say-approve =
    { $n ->
        [one] every call needs a person’s approval
       *[other] every call needs the approval of { $n } people
    }
approval-people =
    { $n ->
        [one] one person, { $value }
       *[other] { $n } different people, { $value }
    }
banner-quarantined =
    { $n ->
        [one] { $n } tool is quarantined until a person approves its definition.
       *[other] { $n } tools are quarantined until a person approves their definitions.
    }
draft-more =
    { $n ->
        [one] { $n } more is not shown.
       *[other] { $n } more are not shown.
    }
why-anonymous =
    { $n ->
        [one] { $n } program is connected and has not registered: update its extension.
       *[other] { $n } programs are connected and have not registered: update their extension.
    }
why-all-denied =
    { $n ->
        [one] The policy denies or hides the { $n } tool of sessions.
       *[other] The policy denies or hides all { $n } tools of sessions.
    }
why-some-allowed =
    { $n ->
        [one] The policy lets the grant call { $n } tool of sessions.
       *[other] The policy lets the grant call { $n } tools of sessions.
    }
audit-searched =
    { $n ->
        [one] { $n } row was searched.
       *[other] The newest { $n } rows were searched; “Older rows” searches on.
    }
