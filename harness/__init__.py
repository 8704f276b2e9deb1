"""An autonomous agent harness whose every fact is a plain file on disk."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:  # the public name
    from harness.sessions.agent import HarnessAgent as HarnessAgent
else:

    def __getattr__(name: str) -> object:
        """`HarnessAgent`, the public Python interface (docs/sessions.md), loaded on first use."""
        if name != "HarnessAgent":
            raise AttributeError(name)
        from harness.sessions.agent import HarnessAgent  # on first use: every command imports this package

        return HarnessAgent
