"""A program that dials in over WebSocket and publishes tools, played with the standard library alone.

Start at `Program.dial`. It answers every call with what it was called with; `close` says goodbye, `abort` does not.
"""

import asyncio
import base64
import json
import os
from urllib.parse import urlsplit

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Program:
    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.calls = []  # the params of every call, as they came
        self.registered = asyncio.get_running_loop().create_future()

    @classmethod
    async def dial(cls, url, uid, base, tools):
        """Connects and registers; calls are answered from then on."""
        parts = urlsplit(url)
        program = cls(*await asyncio.open_connection(parts.hostname, parts.port))
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
        )
        program.writer.write(head.encode())
        answer = await program.reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        program.life = asyncio.create_task(program.live())
        card = {"client_uid": uid, "kind": "client", "version": "8.3.27", "infobase_name": base}
        card |= {"ib_session_number": 1, "tools": tools}
        program.say({"id": "register", "method": "session.register", "params": card})
        welcome = await program.registered
        assert welcome["session_id"] == uid, welcome
        return program

    async def live(self):
        while message := await self.hear():
            if message.get("id") == "register":
                self.registered.set_result(message["result"])
            elif message.get("method") == "tool.call":
                self.calls.append(message["params"])
                self.say({"id": message["id"], "result": {"content": content_for(message["params"])}})

    def say(self, message):
        self.send(TEXT, json.dumps({"jsonrpc": "2.0"} | message, ensure_ascii=False).encode())

    def send(self, kind, payload):
        length = len(payload)
        if length < 126:
            size = bytes([0x80 | length])
        elif length < 1 << 16:
            size = bytes([0x80 | 126]) + length.to_bytes(2)
        else:
            size = bytes([0x80 | 127]) + length.to_bytes(8)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.writer.write(bytes([0x80 | kind]) + size + mask + masked)

    async def hear(self):
        """The next message; none if the other side has closed."""
        while True:
            head = await self.reader.readexactly(2)
            length = head[1]
            if length > 125:
                length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8))
            payload = await self.reader.readexactly(length)
            kind = head[0] & 15
            if kind == TEXT:
                return json.loads(payload)
            if kind == PING:
                self.send(PONG, payload)
            if kind == CLOSE:
                return None

    async def close(self):
        """Says goodbye as real programs do, with a notification, and waits until the socket is closed."""
        self.say({"method": "session.bye", "params": {"reason": "test"}})
        await self.life
        self.writer.close()

    def abort(self):
        """The network is gone."""
        self.life.cancel()
        self.writer.transport.abort()


def content_for(params):
    """What was called, and one block of every kind that a client may get."""
    called = json.dumps(params, ensure_ascii=False)
    return [
        {"type": "text", "text": called},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "e1cib://data/1", "mimeType": "text/plain", "text": "Ёлка"}},
    ]
