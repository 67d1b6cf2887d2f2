"""What went over the wire: the raw text of every message that reached the client.

The SDK parses and validates what it reads, so a difference could hide in what its types drop.
Here the bytes are taken before the SDK sees them. Start at `Recorder`.
"""

import json
from contextlib import asynccontextmanager

import anyio
import httpx
import mcp.client.stdio as stdio
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


class Recorder:
    def __init__(self):
        self.step = None
        self.answers = []  # {step, raw, repeated}: the responses, in order of arrival
        self.incoming = []  # {method, raw, late, repeated}: requests and notifications of the server
        self.http = []  # {method, status, lastEventId}: the HTTP exchanges as they began; status 0: none came
        self.asked = {}  # request id -> step
        self.tokens = {}  # progress token -> request id
        self.cancelled = set()  # request ids
        self.news = anyio.Event()
        self.seen = set()  # the raw texts so far
        self.replayed = set()  # those of them that came on a resumed stream

    def sent(self, request_id, token=None):
        self.asked[request_id] = self.step
        if token is not None:
            self.tokens[token] = request_id

    def received(self, raw, resumed=False):
        """The raw text of a message; `resumed` if it came on a stream with Last-Event-ID."""
        message = json.loads(raw)
        # Some servers also replay the empty events that only carried an id.
        # The replay may overtake the original, which then is the one that comes again.
        again = raw in self.seen and (resumed or raw in self.replayed)
        repeated = again or (resumed and raw == "{}")
        self.seen.add(raw)
        if resumed:
            self.replayed.add(raw)
        if "method" in message:
            # Progress of a call that was cancelled may still arrive or not: both are right.
            asker = self.tokens.get((message.get("params") or {}).get("progressToken"))
            entry = {"method": message["method"], "raw": raw}
            self.incoming.append(entry | {"late": asker in self.cancelled, "repeated": repeated})
        else:
            step = self.asked.get(message.get("id"), "(nobody asked)")
            self.answers.append({"step": step, "raw": raw, "repeated": repeated})
        self.news.set()
        self.news = anyio.Event()

    async def until(self, method, count, limit=30):
        """Waits until `count` messages with this method have arrived since the start."""
        seen = lambda: sum(e["method"] == method and not e["repeated"] for e in self.incoming)
        with anyio.move_on_after(limit):
            while seen() < count:
                await self.news.wait()
        if seen() < count:
            raise TimeoutError(f"{seen()} of {count} {method} after {limit} s")


@asynccontextmanager
async def streams_to(target, recorder):
    """The SDK's streams to a target ({url, type} or {command, args, env, cwd}), recorded."""
    if target.get("type") == "sse":

        def client(headers=None, timeout=None, auth=None):
            transport = RecordingTransport(recorder)
            return httpx.AsyncClient(transport=transport, headers=headers, timeout=timeout, auth=auth)

        async with sse_client(target["url"], httpx_client_factory=client) as (read, write):
            yield read, write
    elif "url" in target:
        transport = RecordingTransport(recorder)
        timeout = httpx.Timeout(60, read=300)
        async with httpx.AsyncClient(transport=transport, timeout=timeout) as client:
            async with streamable_http_client(target["url"], http_client=client) as (read, write, _):
                yield read, write
    else:
        plain = stdio.TextReceiveStream
        stdio.TextReceiveStream = lambda *args, **kw: RecordedText(plain(*args, **kw), recorder)
        async with stdio.stdio_client(stdio.StdioServerParameters(**target)) as (read, write):
            yield read, write


class RecordedText:
    """A child's standard output, cut into lines on the way."""

    def __init__(self, inner, recorder):
        self.inner = inner
        self.lines = Lines(lambda line: line and recorder.received(line))

    async def __aiter__(self):
        async for chunk in self.inner:
            self.lines.feed(chunk.encode())
            yield chunk


class RecordingTransport(httpx.AsyncHTTPTransport):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    async def handle_async_request(self, request):
        entry = {"method": request.method, "status": 0}
        if "last-event-id" in request.headers:
            entry["lastEventId"] = request.headers["last-event-id"]
        self.recorder.http.append(entry)
        response = await super().handle_async_request(request)
        entry["status"] = response.status_code
        if response.is_success:
            kind = response.headers.get("content-type", "")
            resumed = "lastEventId" in entry
            tap = tap_of(kind, lambda raw: self.recorder.received(raw, resumed))
            response.stream = RecordedBody(response.stream, tap)
        return response


class RecordedBody(httpx.AsyncByteStream):
    def __init__(self, inner, tap):
        self.inner = inner
        self.tap = tap

    async def __aiter__(self):
        async for chunk in self.inner:
            self.tap.feed(chunk)
            yield chunk
        self.tap.end()

    async def aclose(self):
        await self.inner.aclose()


def tap_of(content_type, on_message):
    if content_type.startswith("application/json"):
        return Whole(on_message)
    if content_type.startswith("text/event-stream"):
        return Events(on_message)
    return Whole(lambda text: None)


class Whole:
    """A body that is one message."""

    def __init__(self, on_text):
        self.chunks = []
        self.on_text = on_text

    def feed(self, chunk):
        self.chunks.append(chunk)

    def end(self):
        self.on_text(b"".join(self.chunks).decode())


class Events:
    """A body of server-sent events, one message each; other events are none."""

    def __init__(self, on_text):
        self.on_text = on_text
        self.data = []
        self.kind = "message"
        self.lines = Lines(self.line)

    def feed(self, chunk):
        self.lines.feed(chunk)

    def end(self):
        pass

    def line(self, line):
        if line.startswith("data:"):
            self.data.append(line[5:].removeprefix(" "))
        if line.startswith("event:"):
            self.kind = line[6:].strip()
        if line == "":
            text, self.data = "\n".join(self.data), []
            kind, self.kind = self.kind, "message"
            if text and kind == "message":
                self.on_text(text)


class Lines:
    """Splits chunks into lines; a chunk border may cut a character."""

    def __init__(self, on_line):
        self.rest = b""
        self.on_line = on_line

    def feed(self, chunk):
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            self.on_line(line.removesuffix(b"\r").decode())
