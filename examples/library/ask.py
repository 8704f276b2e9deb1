"""Ask one question: python ask.py "what is in this folder?" """

import os
import sys

from harness import Config, HarnessAgent

config = Config(base_url=os.environ.get("BASE_URL", ""))
with HarnessAgent("assistant", os.environ.get("MODEL", "openai:gpt-5.2"), config=config) as agent:
    print(agent.call_sync(" ".join(sys.argv[1:]) or "Hello!"))
