//! Cursors of lists on `/mcp/<server>`. An agent knows a cursor sealed: it names the grant, the
//! server and the list that it was given for.
//!
//! Invariant: a server receives only cursors that it gave to the same grant for the same list.
//!
//! Start at [`own`] and [`shown`].

use serde_json::json;
use toolgate_admission::call_request::CallRequest;
use toolgate_admission::caller::Caller;
use toolgate_admission::list_kind::Kind;
use toolgate_admission::sealed_token::{CURSORS, Seal};
use toolgate_json::{Edit, peek, quote, text};
use toolgate_mcp::{Refusal, code, method};

use crate::lists::{Unreadable, only};

/// The same cursor results each time, so that equal pages are equal; the cipher allows a fixed
/// nonce for that.
const ALWAYS: [u8; 10] = [0; 10];

/// The cursor was not given to this grant for this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidCursor;

/// The cursor in a request for a list, and the server's own as raw JSON; none if the list is
/// requested from its beginning.
pub fn own<'a>(
    session: &dyn Caller,
    server: &str,
    request: &CallRequest<'a>,
) -> Result<Option<(&'a str, String)>, InvalidCursor> {
    if !is_list(request.method) {
        return Ok(None);
    }
    let given = request.params.map_or(Ok(None), |params| peek(params, &["cursor"]));
    let Some(given) = given.map_err(|_| InvalidCursor)?.filter(|given| *given != "null") else {
        return Ok(None);
    };
    let opened = text(given).and_then(|sealed| open(session, server, request.method, &sealed));
    opened.map(|raw| Some((given, raw))).ok_or(InvalidCursor)
}

/// The refusal of a request with an invalid cursor.
pub fn invalid(id: &str) -> Refusal {
    Refusal {
        code: code::INVALID_PARAMS,
        message: "invalid cursor; list again from the start".to_owned(),
        id: Some(id.to_owned()),
    }
}

/// The result of `method` with the cursor as the agent is to see it; `None` if it has none.
pub(crate) fn shown(
    session: &dyn Caller,
    server: &str,
    method: &str,
    result: &str,
) -> Result<Option<String>, Unreadable> {
    let Some(raw) = only(result, "nextCursor")?.filter(|raw| *raw != "null") else {
        return Ok(None);
    };
    let what = json!([&*session.grant().label, server, method, raw]).to_string();
    let seal = Seal::new(&session.admission().secret(), CURSORS).ok_or(Unreadable)?;
    let sealed = seal.close(&what, ALWAYS).ok_or(Unreadable)?;
    let edited = Edit::new(result).replace(raw, quote(&sealed)).map_err(|_| Unreadable)?.finish();
    String::from_utf8(edited.to_vec()).map(Some).map_err(|_| Unreadable)
}

/// Whether the result of this method may have a cursor.
pub(crate) fn is_list(of: &str) -> bool {
    Kind::listed_by(of).is_some() || of == method::TASKS_LIST
}

fn open(session: &dyn Caller, server: &str, method: &str, sealed: &str) -> Option<String> {
    let opened = Seal::new(&session.admission().secret(), CURSORS)?.open(sealed)?;
    let [grant, of, list, raw] = serde_json::from_str::<[String; 4]>(&opened).ok()?;
    let is_it = *grant == *session.grant().label && of == server && list == method;
    is_it.then_some(raw)
}
