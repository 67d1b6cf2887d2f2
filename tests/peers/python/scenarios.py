"""What clients of the Python SDK go through with toolgate: `python scenarios.py NAME JOB.json`.

Jobs are those of scenarios.mjs, where the other scenarios are.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import held
from client import Message, Result, make_session
from dialled import story
from gate import gate
from wire import Recorder, streams_to


async def resume(job, folder):
    """The connection is cut in mid-call; progress and result still arrive, each exactly once."""
    async with gate(job, folder) as port, proxy(port) as (near, cut):
        for server in ("everything", "everything-http"):
            async with connected(near, server, "resumer") as (session, recorder):
                seen = []

                async def progress(step, total, message):
                    seen.append(step)
                    if step == 1:
                        cut()

                arguments = {"duration": 4, "steps": 4}
                result = await call(session, "trigger-long-running-operation", arguments, progress)
                assert "completed" in result["content"][0]["text"], result
                assert seen == [1, 2, 3, 4], seen
                resumed = [e for e in recorder.http if "lastEventId" in e and e["status"] == 200]
                assert resumed, recorder.http
                await session.list_tools()
                assert_once(recorder)


async def two_clients(job, folder):
    """Two clients at once; each is asked what its own server wants to know."""
    async with gate(job, folder) as port:
        for server in ("everything", "everything-http"):
            async with connected(port, server, "alice") as alice, connected(port, server, "bob") as bob:
                rounds = [one_round(*who, n) for n in range(10) for who in ((alice, "alice"), (bob, "bob"))]
                await asyncio.gather(*rounds)
                assert_once(alice[1])
                assert_once(bob[1])


async def one_round(connection, name, number):
    prompt = f"{name} {number}"
    sampled = await call(connection[0], "trigger-sampling-request", {"prompt": prompt, "maxTokens": 5})
    assert f"{name} was asked: " in str(sampled) and f"context: {prompt}" in str(sampled), sampled
    elicited = await call(connection[0], "trigger-elicitation-request", {})
    assert f"- Name: {name}\\n" in str(elicited), elicited


async def sessions(job, folder):
    """Programs dial in and go: the client is told, sees their tools and calls them."""
    async with gate(job, folder, sessions="127.0.0.1:0") as port:
        async with connected(port, "sessions", "agent") as (session, recorder):
            await story(Legacy(session, recorder), job["dial"])


async def approvals(job, folder):
    """A call that waits for a person: progress, approved in time, approved later and repeated, asked in-band."""
    async with gate(job, folder, policy=held.POLICY) as port:
        asked = []
        async with connected(port, "everything", "holder", asked) as (session, recorder):
            await held.story(Holder(session, asked), held.Desk(job["admin"], job["data"]))
            assert_once(recorder)


class Holder:
    """The client of `held.story`."""

    def __init__(self, session, asked):
        self.session = session
        self.asked = asked

    async def call(self, name, arguments, progress=None):
        return await call(self.session, name, arguments, progress)


class Legacy:
    """The client of `dialled.story`."""

    def __init__(self, session, recorder):
        self.session = session
        self.recorder = recorder
        self.known = 0

    async def tools(self):
        self.known = len(changes(self.recorder))
        return [tool.model_dump() for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        return await call(self.session, name, arguments)

    async def changed(self):
        while len(changes(self.recorder)) == self.known:
            await self.recorder.news.wait()


def changes(recorder):
    """How often the client was told that tools have changed."""
    return [entry for entry in recorder.incoming if "tools/list_changed" in entry["raw"]]


SCENARIOS = {
    'py-resume': resume,
    'py-two-clients': two_clients,
    'py-sessions': sessions,
    'py-approvals': approvals,
}


@asynccontextmanager
async def proxy(port):
    """Forwards TCP to a port of the loopback interface; gives its own port and a way to cut."""
    writers = set()

    async def pump(reader, writer):
        writers.add(writer)
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # Cut.
        finally:
            writers.discard(writer)
            writer.close()

    async def accept(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    def cut():
        for writer in list(writers):
            writer.transport.abort()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], cut
    server.close()
    cut()


@asynccontextmanager
async def connected(port, server, name, asked=None):
    recorder = Recorder()
    target = {"url": f"http://127.0.0.1:{port}/mcp/{server}"}
    async with streams_to(target, recorder) as (read, write):
        async with make_session(name, read, write, asked=asked) as session:
            await session.initialize()
            yield session, recorder


async def call(session, tool, arguments, progress=None):
    message = Message(method="tools/call", params={"name": tool, "arguments": arguments})
    return (await session.send_request(message, Result, progress_callback=progress)).model_dump()


def assert_once(recorder):
    """No message came twice: neither an answer, nor anything else seen before a resumption."""
    ids = [json.loads(answer["raw"])["id"] for answer in recorder.answers]
    assert len(set(ids)) == len(ids), ids
    assert not [entry for entry in recorder.incoming if entry["repeated"]]


with open(sys.argv[2]) as file:
    job = json.load(file)
asyncio.run(SCENARIOS[sys.argv[1]](job, os.path.join(job["folder"], sys.argv[1])))
