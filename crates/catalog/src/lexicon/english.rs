//! English verbs, by class and kind.

use super::Kind;
use crate::class::Class;

/// Verbs in their base form, parted by blanks.
pub(super) const VERBS: &[(Class, Kind, &str)] = &[
    (
        Class::Read,
        Kind::Verb,
        "get list read find fetch retrieve describe show lookup inspect analyze analyse validate verify \
         explain compare diagnose detect identify discover explore browse introspect enumerate display \
         return provide suggest recommend summarize summarise transcribe extract scrape crawl parse \
         lint calculate compute estimate determine examine locate see tell whois ping \
         measure predict classify ask answer learn peek hash decode encode count check access \
         gather collect obtain output respond whoami",
    ),
    (
        Class::Read,
        Kind::Both,
        "search query view look scan watch poll wait preview diff log audit status info help tail grep \
         head cat ls stat glob tree trace profile screenshot snapshot report plan review resolve match \
         monitor capture research sample select think guide introspection quote",
    ),
    (
        Class::Write,
        Kind::Verb,
        "create update add edit modify insert write send assign rename move duplicate upload publish \
         unpublish register subscribe unsubscribe invite enable disable activate deactivate configure \
         initialize initialise init provision establish import append prepend attach detach approve \
         reject accept decline dismiss upsert replace reschedule submit disconnect leave pause resume \
         unpause unmute unpin unstar unfollow rotate revoke allow ban unban kick notify react upvote \
         downvote acknowledge reopen archive unarchive restore undelete recover stop halt restart reboot \
         start pull download save store persist sync synchronize generate synthesize synthesise render \
         draw compose translate convert transform transition promote demote escalate increment decrement \
         toggle unmark unflag untag unlink bind unbind unstage checkout rebase cherrypick fill click \
         navigate isolate adjust alter remind confirm cancel abort set put broadcast reserve unblock \
         unlock mount unmount expose deploy undeploy rollout recreate rebuild apply fix autofix repair \
         optimize optimise tune refactor annotate transpose resize compress decompress unzip encrypt \
         decrypt populate customize customise onboard enroll unenroll tweet dm initiate migrate upgrade \
         downgrade extend renew shutdown turn snooze retry freeze unfreeze suspend unsuspend \
         resend resubmit silence forward allocate reallocate reorder shuffle rearrange redirect relay \
         authorize authorise grayscale cordon uncordon recharge sign retire whitelist blacklist \
         allowlist deliver stow shorten reassign unassign unschedule preload dial play rewind",
    ),
    (
        Class::Write,
        Kind::Both,
        "comment note issue label order release branch push build model map index rate score bookmark \
         like watchlist queue enqueue cache backup export track setup place claim transcode email \
         message request draft tag star link pin flag stage commit fork patch type input focus record \
         mark lock block book copy post share reply vote change merge connect clone stash scroll drag \
         tap exercise schedule grant format join follow mute crop trim zip seed swipe hover press wire scale ship undo redo",
    ),
    (
        Class::Write,
        Kind::Vague,
        "close open manage handle process end finish complete prepare make maintain administer control \
         organize organise operate teleport switch ensure load perform conduct",
    ),
    (
        Class::Execute,
        Kind::Verb,
        "execute exec run invoke eval spawn launch trigger kill install dispatch \
         automate",
    ),
    (
        Class::Execute,
        Kind::Both,
        "call ssh repl powershell script shell bash terminal test debug command compile evaluate simulate",
    ),
    (
        Class::Destructive,
        Kind::Verb,
        "delete remove drop purge wipe destroy erase truncate uninstall nuke obliterate expunge \
         deprovision decommission shred terminate annihilate overwrite rm rmdir del reformat zeroize zeroise forget udalit steret \
         unichtozhit",
    ),
    (
        Class::Destructive,
        Kind::Vague,
        "clear reset revert rollback flush clean cleanup prune discard empty unset evict ochistit",
    ),
    (
        Class::Financial,
        Kind::Verb,
        "pay repay prepay reimburse withdraw donate buy sell purchase remit wager liquidate disburse \
         settle topup unstake lend mint airdrop overpay oplatit",
    ),
    (
        Class::Financial,
        Kind::Both,
        "charge refund transfer payment payout payroll trade deposit bet bid bill tip stake swap \
         invoice credit debit",
    ),
];

/// Nouns that name what a verb does.
pub(super) const NOUNS_OF_VERBS: &[(&str, &str)] = &[
    ("deletion", "delete"),
    ("removal", "remove"),
    ("destruction", "destroy"),
    ("creation", "create"),
    ("execution", "execute"),
    ("retrieval", "retrieve"),
    ("validation", "validate"),
    ("modification", "modify"),
    ("cancellation", "cancel"),
    ("automation", "automate"),
    ("extraction", "extract"),
    ("analysis", "analyze"),
    ("verification", "verify"),
    ("comparison", "compare"),
    ("withdrawal", "withdraw"),
    ("truncation", "truncate"),
    ("erasure", "erase"),
    ("summarization", "summarize"),
    ("generation", "generate"),
    ("conversion", "convert"),
    ("registration", "register"),
    ("installation", "install"),
    ("documentation", "describe"),
    ("inspection", "inspect"),
    ("deleter", "delete"),
    ("remover", "remove"),
    ("eraser", "erase"),
];

/// Verbs of two words: the first, the second, and the verb that they are.
pub(super) const PHRASES: &[(&str, &str, &str)] = &[
    ("tear", "down", "destroy"),
    ("throw", "away", "discard"),
    ("blow", "away", "destroy"),
    ("get", "rid", "remove"),
    ("rub", "out", "erase"),
    ("wipe", "out", "wipe"),
    ("force", "push", "overwrite"),
    ("push", "force", "overwrite"),
    ("pay", "out", "pay"),
    ("cash", "out", "withdraw"),
    ("top", "up", "topup"),
];
