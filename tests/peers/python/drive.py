"""Drives one server through a tour and writes down what came back: `python drive.py JOB.json`.

The twin of drive.mjs, with the Python SDK; jobs and tours are the same.
"""

import json
import re
import sys

import anyio
from client import Message, Result, make_session
from mcp.shared.exceptions import McpError
from wire import Recorder, streams_to


async def main(job):
    with open(job["tour"]) as file:
        steps = json.load(file)["steps"]
    recorder = Recorder()
    try:
        async with streams_to(job["target"], recorder) as (read, write):
            async with make_session("tour", read, write, job.get("roots") or []) as session:
                await walk(session, recorder, steps, dict(job.get("values") or {}))
    except* anyio.BrokenResourceError:
        # The SDK's way to say that a notification arrived while it was closing.
        pass
    with open(job["out"], "w") as file:
        wanted = {key: getattr(recorder, key) for key in ("answers", "incoming", "http")}
        json.dump(wanted, file, indent=1)


async def walk(session, recorder, steps, values):
    recorder.step = "initialize"
    recorder.sent(0)
    await session.initialize()
    for step in steps:
        recorder.step = step.get("name")
        try:
            await take(session, recorder, values, step)
        except Exception as error:
            raise RuntimeError(f"step {step}") from error


async def take(session, recorder, values, step):
    if "await" in step:
        return await recorder.until(step["await"], step.get("count", 1))
    if "notify" in step:
        message = Message(method=step["notify"], params=filled(step.get("params"), values))
        return await session.send_notification(message)
    if "call" in step:
        params = {"name": step["call"], "arguments": step.get("arguments", {})}
        message = Message(method="tools/call", params=filled(params, values))
    else:
        message = Message(method=step["request"], params=filled(step.get("params"), values))
    result = await ask(session, recorder, message, step)
    for name, path in step.get("save", {}).items():
        value = result
        for key in path.split("/"):
            value = value[key]
        values[name] = value


async def ask(session, recorder, message, step):
    request_id = session._request_id
    recorder.sent(request_id, request_id if step.get("progress") else None)
    with anyio.CancelScope() as scope:

        async def progress(*_):
            if step.get("cancel") and request_id not in recorder.cancelled:
                recorder.cancelled.add(request_id)
                params = {"requestId": request_id, "reason": "the tour cancels"}
                await session.send_notification(Message(method="notifications/cancelled", params=params))
                scope.cancel()

        try:
            callback = progress if step.get("progress") else None
            result = await session.send_request(message, Result, progress_callback=callback)
            return result.model_dump()
        except McpError:
            # An error answer is an answer; what came is on record either way.
            return None


def filled(value, values):
    """Every "${name}" in the strings of a step, replaced."""
    put = lambda found: json.dumps(values[found[1]])[1:-1]
    return json.loads(re.sub(r"\$\{(\w+)\}", put, json.dumps(value)))


with open(sys.argv[1]) as file:
    anyio.run(main, json.load(file))
