"""Puts agent sessions into zulipchat-mcp's own database, so that it has something to close.

`python zulip_sessions.py COUNT` with the environment that the server will have; they are called s0, s1 …
"""

import sys

from zulipchat_mcp.utils.database_manager import DatabaseManager

database = DatabaseManager()
made = database.upsert_agent_profile(
    agent_id="agent",
    agent_name="agent",
    agent_type="test",
    owner_email="owner@example.test",
    stream_name="stream",
    topic_prefix="topic",
)
assert made["status"] == "success", made
for number in range(int(sys.argv[1])):
    made = database.upsert_agent_session(
        session_id=f"s{number}",
        agent_id="agent",
        stream_name="stream",
        topic_name=f"topic {number}",
        owner_email="owner@example.test",
        status="active",
    )
    assert made["status"] == "success", made
