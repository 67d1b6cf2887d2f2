//! The webhook: notices that toolgate posts to a chat or a program of the operator.
//!
//! Invariant: a receiver can check who sent a notice and when: the signature covers time and body.

use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{Request, header};
use sha2::Sha256;
use tokio::time::timeout;

use crate::remote::Client;

/// How long a receiver may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer of a receiver that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// One notice.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// Where it goes.
    pub url: &'a str,
    /// Signs it; without one it is not signed.
    pub secret: Option<&'a str>,
    /// When it is sent, in seconds since 1970.
    pub time: i64,
    /// The same for every attempt.
    pub delivery: &'a str,
    /// JSON.
    pub body: &'a str,
}

/// Why a notice was not delivered. Texts contain nothing of the address, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDelivered {
    /// The address is not valid.
    #[error("the address of the webhook is not valid")]
    Address,
    /// There was no answer.
    #[error("the webhook cannot be reached")]
    Unreachable,
    /// The receiver did not accept it.
    #[error("the webhook answered {0}")]
    Status(u16),
}

/// Posts a notice; it is delivered if the receiver answers with a status of 200 to 299, whatever
/// follows.
pub async fn post(client: &Client, notice: Notice<'_>) -> Result<(), NotDelivered> {
    let mut request = Request::post(notice.url)
        .header(header::CONTENT_TYPE, "application/json")
        .header("Toolgate-Timestamp", notice.time)
        .header("Toolgate-Delivery", notice.delivery);
    if let Some(secret) = notice.secret {
        let signature = signature(secret, notice.time, notice.body);
        request = request.header("Toolgate-Signature", format!("v1={signature}"));
    }
    let body = Bytes::copy_from_slice(notice.body.as_bytes());
    let request = request.body(body).map_err(|_| NotDelivered::Address)?;
    let answered = timeout(TIMEOUT, client.status(request, MAX_ANSWER)).await;
    let status = answered.map_err(|_| NotDelivered::Unreachable)?;
    let status = status.map_err(|_| NotDelivered::Unreachable)?;
    if status.is_success() { Ok(()) } else { Err(NotDelivered::Status(status.as_u16())) }
}

/// The signature of a notice: hexadecimal HMAC-SHA256 over the time, a full stop and the body.
fn signature(secret: &str, time: i64, body: &str) -> String {
    // HMAC accepts a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(time.to_string().as_bytes());
    mac.update(b".");
    mac.update(body.as_bytes());
    let bytes = mac.finalize().into_bytes();
    data_encoding::HEXLOWER.encode(&bytes)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{Client, NotDelivered, Notice, post, signature};

    /// A receiver that answers with more than is read, or less than it announces, has still answered.
    #[tokio::test]
    async fn the_status_decides() {
        let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", receiver.local_addr().unwrap());
        let notice = Notice { url: &url, secret: None, time: 0, delivery: "apr_1", body: "{}" };
        let client = Client::new();
        for (status, expected) in [
            ("200 OK", Ok(())),
            ("302 Found\r\nLocation: /other", Err(NotDelivered::Status(302))),
            ("500 No", Err(NotDelivered::Status(500))),
        ] {
            for sent in [2 << 20, 10] {
                let answer = async {
                    let (mut stream, _) = receiver.accept().await.unwrap();
                    stream.read_u8().await.unwrap();
                    let head = format!("HTTP/1.1 {status}\r\nContent-Length: 9999999\r\n\r\n");
                    stream.write_all(head.as_bytes()).await.unwrap();
                    // It is closed before everything was written.
                    drop(stream.write_all(&vec![b'x'; sent]).await);
                };
                let (delivered, ()) = tokio::join!(post(&client, notice), answer);
                assert_eq!(delivered, expected, "{status}");
            }
        }
    }

    #[test]
    fn time_and_body_are_signed() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
        let known = "49f24e53";
        let signed = signature("secret", 1_700_000_000, r#"{"a":1}"#);
        assert_eq!(signed.len(), 64);
        assert!(signed.starts_with(known), "{signed}");
        assert_ne!(signed, signature("secret", 1_700_000_001, r#"{"a":1}"#));
        assert_ne!(signed, signature("secret", 1_700_000_000, r#"{"a":2}"#));
        assert_ne!(signed, signature("other", 1_700_000_000, r#"{"a":1}"#));
    }
}
