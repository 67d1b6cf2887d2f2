//! The stream of a listener: plain TCP or TLS.
//!
//! A connection can move from one runtime to another after its handshake: the socket is detached
//! and registered with the other runtime. Decrypted bytes stay with it.
//!
//! Invariant: peeked bytes are read first, once.

use std::io::{self, IoSlice};
use std::net::TcpStream as Socket;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connection.
pub(crate) enum Stream {
    Plain(TcpStream),
    Secure(Box<Secure>),
}

/// A connection between two runtimes.
pub(crate) struct DetachedStream {
    socket: Socket,
    secure: Option<Box<Secure>>,
}

/// A TLS connection.
pub(crate) struct Secure {
    tls: TlsStream<DetachableSocket>,
    /// Bytes that were peeked but not read yet.
    peeked: Vec<u8>,
    taken: usize,
}

/// A socket that can be detached for a move.
#[derive(Debug)]
pub(super) struct DetachableSocket(Option<TcpStream>);

// === impl Stream ===

impl Stream {
    /// Detaches it from this runtime.
    pub(crate) fn detach(self) -> io::Result<DetachedStream> {
        match self {
            Self::Plain(stream) => Ok(DetachedStream { socket: stream.into_std()?, secure: None }),
            Self::Secure(mut secure) => {
                let socket = secure.tls.get_mut().0.0.take().ok_or_else(on_the_move)?;
                Ok(DetachedStream { socket: socket.into_std()?, secure: Some(secure) })
            }
        }
    }
}

// === impl DetachedStream ===

impl DetachedStream {
    /// Attaches it to this runtime.
    pub(crate) fn attach(self) -> io::Result<Stream> {
        let socket = TcpStream::from_std(self.socket)?;
        Ok(match self.secure {
            None => Stream::Plain(socket),
            Some(mut secure) => {
                secure.tls.get_mut().0.0 = Some(socket);
                Stream::Secure(secure)
            }
        })
    }
}

// === impl Secure ===

impl Secure {
    pub(super) fn new(tls: TlsStream<DetachableSocket>) -> Self {
        Self { tls, peeked: Vec::new(), taken: 0 }
    }

    /// The first bytes: waits for more than `known` bytes, and for at most `most`. Returns the same
    /// bytes again at the end of the stream.
    pub(crate) async fn peek(&mut self, known: usize, most: usize) -> io::Result<&[u8]> {
        while self.peeked.len() <= known && self.peeked.len() < most {
            let mut more = vec![0; most - self.peeked.len()];
            let count = self.tls.read(&mut more).await?;
            if count == 0 {
                break;
            }
            self.peeked.extend_from_slice(more.get(..count).unwrap_or_default());
        }
        Ok(&self.peeked)
    }
}

impl AsyncRead for Secure {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let left = me.peeked.get(me.taken..).unwrap_or_default();
        if left.is_empty() {
            return Pin::new(&mut me.tls).poll_read(context, buffer);
        }
        let count = left.len().min(buffer.remaining());
        buffer.put_slice(left.get(..count).unwrap_or_default());
        me.taken += count;
        if me.taken == me.peeked.len() {
            (me.peeked, me.taken) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

// === impl DetachableSocket ===

impl DetachableSocket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Some(stream))
    }

    fn socket(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        self.get_mut().0.as_mut().map(Pin::new).ok_or_else(on_the_move)
    }
}

fn on_the_move() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the connection is on its way to another thread")
}

impl AsyncRead for DetachableSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for DetachableSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_shutdown(context)
    }
}

// === impl AsyncRead and AsyncWrite for Stream ===

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Secure(secure) => Pin::new(&mut **secure).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(secure) => Pin::new(&mut secure.tls).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Secure(secure) => Pin::new(&mut secure.tls).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Secure(secure) => secure.tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(secure) => Pin::new(&mut secure.tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(secure) => Pin::new(&mut secure.tls).poll_shutdown(context),
        }
    }
}
