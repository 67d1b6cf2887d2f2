//! The query of a request: only known parameters, each once.

use std::str::FromStr;

use crate::fault::Fault;

/// The parameters of a query.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query with only these parameters: a misspelt filter must not return everything.
    pub(crate) fn read(raw: Option<&str>, known: &[&str]) -> Result<Self, Fault> {
        let pairs: Vec<(String, String)> =
            url::form_urlencoded::parse(raw.unwrap_or_default().as_bytes()).into_owned().collect();
        for (place, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let why = format!("unknown parameter `{name}`; this path takes: {known}");
                return Err(Fault::bad_request(why));
            }
            if pairs.iter().skip(place + 1).any(|(other, _)| other == name) {
                return Err(Fault::bad_request(format!("the parameter `{name}` is given twice")));
            }
        }
        Ok(Self(pairs))
    }

    /// The value of `name`, if it is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of `name` as a number.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Fault> {
        let wrong = |text| Fault::bad_request(format!("`{name}` must be a number, not `{text}`"));
        self.text(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }
}
