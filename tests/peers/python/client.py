"""A session of the Python SDK that can do all a server may ask for, with fixed answers."""

from datetime import timedelta
from typing import Any

import mcp.types as types
from mcp.client.session import ClientSession
from pydantic import BaseModel


class Message(BaseModel):
    """Any request or notification: the SDK's own types would refuse what they do not know."""

    method: str
    params: dict[str, Any] | None = None


class Result(BaseModel, extra="allow"):
    """Any result."""


def make_session(name, read, write, roots=(), asked=None):
    """`name` appears in every answer, so that an answer given by the wrong client shows. Questions are put into `asked`."""

    async def sampling(context, params):
        text = f"{name} was asked: {params.messages[0].content.text}"
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", content=content, model="none", stopReason="endTurn")

    async def elicitation(context, params):
        if asked is not None:
            asked.append(params.message)
        if getattr(params, "mode", "form") == "url":
            return types.ElicitResult(action="decline")
        content = {"name": name, "check": True, "integer": 7, "number": 1.5}
        return types.ElicitResult(action="accept", content=content)

    async def list_roots(context):
        return types.ListRootsResult(roots=[types.Root(**root) for root in roots])

    return ClientSession(
        read,
        write,
        read_timeout_seconds=timedelta(seconds=60),
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        list_roots_callback=list_roots,
        client_info=types.Implementation(name=name, version="1.0.0"),
    )
