"""A held call as a client meets it: it waits with progress, is approved in time or later, or asks its own user."""

import asyncio
import json
import os
import urllib.request

HELD = {"approve": {"wait": "60s"}}
SHORT = {"approve": {"wait": "1s"}}
IN_BAND = {"approve": {"wait": "60s", "approvers": ["requester"]}}
# For calls without a token.
POLICY = {
    "version": "1",
    "default": "allow",
    "tools": {"echo": HELD, "get-sum": SHORT, "get-tiny-image": IN_BAND},
}


class Desk:
    """The person who answers, over the admin API."""

    def __init__(self, admin, data):
        self.admin = admin
        with open(os.path.join(data, "admin.token")) as file:
            self.token = file.read().strip()

    async def ask(self, method, path):
        return await asyncio.to_thread(self.ask_now, method, path)

    def ask_now(self, method, path):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = b"{}" if method == "POST" else None
        request = urllib.request.Request(f"{self.admin}/api/v1/{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    async def pending(self):
        """The only pending approval."""
        items = (await self.ask("GET", "approvals?state=pending"))["items"]
        assert len(items) == 1, items
        return items[0]

    async def approve(self, approval):
        return await self.ask("POST", f"approvals/{approval}/approve")

    async def deny(self, approval):
        return await self.ask("POST", f"approvals/{approval}/deny")

    async def state(self, approval):
        return (await self.ask("GET", f"approvals/{approval}"))["state"]

    async def answers(self, approval):
        rows = (await self.ask("GET", "audit?limit=1000&kind=approval"))["items"]
        return [row["via"] for row in rows if row["approval_id"] == approval and row.get("via")]


async def story(client, desk):
    """`client.call(tool, arguments, progress)` calls; the result is as it is on the wire."""
    # In time: the progress arrives first.
    told = asyncio.Event()

    async def progress(step, total, message):
        assert total == 60 and "waiting for a person" in message, (step, total, message)
        told.set()

    call = asyncio.ensure_future(client.call("echo", {"message": "in time"}, progress))
    await asyncio.wait([call, asyncio.ensure_future(told.wait())], return_when=asyncio.FIRST_COMPLETED)
    assert told.is_set() and not call.done(), call
    approval = (await desk.pending())["id"]
    await desk.approve(approval)
    assert (await call)["content"][0]["text"] == "Echo: in time", call
    assert await desk.state(approval) == "consumed"

    # After the time-out: the repeat is sent, once.
    arguments = {"a": 2, "b": 3}
    late = await client.call("get-sum", arguments)
    meta = late["_meta"]
    assert late["isError"] and meta["error_code"] == "approval_required", late
    assert late["content"][0]["text"].startswith("[APPROVAL REQUIRED] "), late
    await desk.approve(meta["approval_id"])
    other = await client.call("get-sum", {"a": 2, "b": 4})
    assert other["_meta"]["approval_id"] != meta["approval_id"], "changed arguments are another approval"
    await desk.deny(other["_meta"]["approval_id"])
    assert "5" in (await client.call("get-sum", arguments))["content"][0]["text"]
    again = await client.call("get-sum", arguments)
    assert again["_meta"]["error_code"] == "approval_required", again
    assert again["_meta"]["approval_id"] != meta["approval_id"], "it was used up"
    await desk.deny(again["_meta"]["approval_id"])

    # In-band: the client's own user is asked.
    image = await client.call("get-tiny-image", {})
    assert not image.get("isError"), image
    assert len(client.asked) == 1 and "get-tiny-image" in client.asked[0], client.asked
    used = (await desk.ask("GET", "approvals?state=consumed"))["items"]
    [used] = [item["id"] for item in used if item["tool"] == "get-tiny-image"]
    assert await desk.answers(used) == ["in-band"]
