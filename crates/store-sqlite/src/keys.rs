//! The keys of a data folder: one signs checkpoints, one hashes arguments.
//!
//! Each is a hex file that only its owner can read, created once and never changed. `audit.pub`
//! next to them contains the public key for verification elsewhere.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use toolgate_audit::{ArgumentHashKey, Hash, PublicKey, Signer};
use toolgate_os::files;
use toolgate_store::{StoreError, StoreErrorKind};

use crate::{Randomness, error::file_error};

/// Creates the data folder with access for its owner only.
pub(crate) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    files::create_folders(folder).map_err(|error| file_error(folder, &error))
}

/// Reads or creates the keys of the folder.
pub(crate) fn read_or_make(
    folder: &Path,
    randomness: &Randomness,
) -> Result<(Signer, ArgumentHashKey), StoreError> {
    let signer = Signer::new(&key(&folder.join("audit.key"), &randomness.signing, files::create)?);
    key(&folder.join("audit.pub"), &signer.public_key().to_bytes(), files::create_readable)?;
    let secret =
        ArgumentHashKey(key(&folder.join("hash.key"), &randomness.hashing, files::create)?);
    Ok((signer, secret))
}

/// The key that verifies the checkpoints of a folder.
pub(crate) fn public_key(folder: &Path) -> Result<PublicKey, StoreError> {
    let secret = folder.join("audit.key");
    if secret.exists() {
        return Ok(Signer::new(&read(&secret)?).public_key());
    }
    let public = folder.join("audit.pub");
    PublicKey::new(&read(&public)?).ok_or_else(|| no_key(&public))
}

/// Makes the file of a key.
type Create = fn(&Path) -> io::Result<File>;

/// Reads a key or creates it. If several processes try at once, the first one wins.
fn key(path: &Path, fresh: &[u8; 32], create: Create) -> Result<[u8; 32], StoreError> {
    if path.exists() {
        return read(path);
    }
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        // Left over from a process that exited too early. A link is removed, not its target.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = create(&temporary)?;
        writeln!(file, "{}", Hash(*fresh))?;
        file.sync_all()?;
        // Unlike a rename, a hard link never replaces a file that another process has just created.
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => fs::remove_file(&temporary),
        }
    };
    write().map_err(|error| file_error(path, &error))?;
    read(path)
}

fn read(path: &Path) -> Result<[u8; 32], StoreError> {
    let text = fs::read_to_string(path).map_err(|error| file_error(path, &error))?;
    Hash::parse(text.trim_end()).map(|hash| hash.0).map_err(|_| no_key(path))
}

fn no_key(path: &Path) -> StoreError {
    let message = format!("`{}` is not a valid key file: expected 64 hex digits", path.display());
    StoreError::new(StoreErrorKind::Corrupt, message)
}
