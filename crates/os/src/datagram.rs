//! Datagrams to a socket in the file system, such as that of a syslog daemon.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Whether a program receives there.
pub fn check(socket: &Path) -> io::Result<()> {
    UnixDatagram::unbound()?.connect(socket)
}

/// Sends one message. It connects each time, because the receiver may have restarted.
pub fn send(socket: &Path, message: &[u8]) -> io::Result<()> {
    UnixDatagram::unbound()?.send_to(message, socket).map(drop)
}
