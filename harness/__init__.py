"""An autonomous agent harness that keeps all its state in plain files."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:  # the public names
    from harness.builtin.sessions.agent import AgentConfig
    from harness.builtin.sessions.agent import HarnessAgent as HarnessAgent

    Config = AgentConfig
else:

    def __getattr__(name: str) -> object:
        """`HarnessAgent` and its `Config`, the public Python interface (docs/sessions.md), loaded on first use."""
        if name not in ("HarnessAgent", "Config"):
            raise AttributeError(name)
        from harness.builtin.sessions import agent  # on first use: every command imports this package

        return agent.HarnessAgent if name == "HarnessAgent" else agent.AgentConfig
