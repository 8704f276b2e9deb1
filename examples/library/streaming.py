"""Show the answer while it comes, and the tools that the agent calls."""

import asyncio
import os

from harness import CallEvent, Config, EndEvent, HarnessAgent, TextEvent


async def main() -> None:
    config = Config(base_url=os.environ.get("BASE_URL", ""))
    async with HarnessAgent("assistant", os.environ.get("MODEL", "openai:gpt-5.2"), config=config) as agent:
        async for event in agent.stream("Which files do I have?"):
            if isinstance(event, TextEvent):
                print(event.text, end="", flush=True)
            elif isinstance(event, CallEvent):
                print(f"[{event.name}]")
            elif isinstance(event, EndEvent):
                print(f"\n({event.reply.outcome}, {event.reply.usage['output']} tokens)")


asyncio.run(main())
