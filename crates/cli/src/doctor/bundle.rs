//! The archive for support: what the checks found, without secrets.
//!
//! Invariant: of the configuration only keys and the values of a few known settings are written; of
//! the environment only names.

mod redact;

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use toolgate_control::trusted;

use self::redact::redacted;
use super::{data, files};
use crate::args::DoctorArgs;
use crate::config_source::Source;
use crate::version::VERSION;

/// Writes a tar archive for its owner alone.
pub(super) fn write(path: &Path, args: &DoctorArgs, result: &Value) -> anyhow::Result<()> {
    let source = Source::find(args.admin.data.config.as_deref());
    let here = super::Installation {
        args,
        config: None,
        folder: crate::data::find_data(
            args.admin.data.data.as_deref(),
            args.admin.data.config.as_deref(),
        )
        .ok(),
        source,
    };
    let config = here.source.file().and_then(|file| trusted::read_text(file).ok());
    let names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let mut parts = vec![
        ("doctor.json", format!("{result:#}\n")),
        ("version.txt", format!("toolgate {VERSION}\n{}\n", std::env::consts::OS)),
        ("environment.txt", format!("{}\n", names.join("\n"))),
        ("problems.txt", files::problems(&here.source)),
    ];
    parts.extend(config.map(|text| ("toolgate.yaml", redacted(&text))));
    if here.has_gateway()
        && let Ok(status) = data::status(&here)
    {
        parts.push(("status.json", format!("{status:#}\n")));
    }
    let what = || format!("cannot write `{}`", path.display());
    let mut file = trusted::create(path).with_context(what)?;
    file.write_all(&archive(&parts)).with_context(what)
}

/// A tar archive (ustar) of small text files.
fn archive(parts: &[(&str, String)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, text) in parts {
        let mut head = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(slot) = head.get_mut(at..at + bytes.len()) {
                slot.copy_from_slice(bytes);
            }
        };
        put(0, format!("toolgate-doctor/{name}").as_bytes());
        put(100, b"0000600\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", text.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        if let Some(slot) = head.get_mut(148..156) {
            slot.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        tar.extend_from_slice(&head);
        tar.extend_from_slice(text.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_a_tar() {
        let tar = archive(&[("a.txt", "hello".to_owned())]);
        assert_eq!(tar.len() % 512, 0);
        assert_eq!(tar.get(512..517), Some(&b"hello"[..]));
        assert_eq!(tar.get(257..262), Some(&b"ustar"[..]));
    }
}
