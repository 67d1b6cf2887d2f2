//! The fields of a form or a query.

/// Names and values, in their order.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `a=1&b=2`.
    pub(crate) fn read(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).into_owned().collect())
    }

    /// The value of a field, without spaces around it; empty if it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The value of a field as it was sent; empty if it is absent.
    pub(crate) fn raw(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The value of a field, if it is not empty.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|value| !value.is_empty())
    }

    /// All values of a field that are not empty.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let found = self.0.iter().filter(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// Whether a field was sent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// The words of a field, separated by spaces or commas.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let words = self.raw(name).split([',', ' ', '\n']).map(str::trim);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}
