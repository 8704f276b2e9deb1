"""Serve several people at once; a hook notes who called which tool. Each sees only their own sessions, files and memory."""

import asyncio
import os
from typing import Any

from harness import CallContext, Config, HarnessAgent, Hooks

notes: list[str] = []


def note(tool: str, arguments: dict[str, Any]) -> None:
    context = CallContext.current()
    notes.append(f"{context.user} of {context.attributes['team']}: {tool}")


async def main() -> None:
    config = Config(base_url=os.environ.get("BASE_URL", ""), hooks=Hooks(before_tool=note))
    async with HarnessAgent("assistant", os.environ.get("MODEL", "openai:gpt-5.2"), config=config) as agent:
        calls = [agent.call("Which files do I have?", user_id=name, attributes={"team": "red"}) for name in ("ann", "bob")]
        for reply in await asyncio.gather(*calls):
            print(f"{reply.user}: {reply}")
    print(*notes, sep="\n")


asyncio.run(main())
