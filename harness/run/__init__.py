"""One run in six steps, and what stands around it: starting a mission, orders of people, recovery of what died."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.run.steps import main as main
else:

    def __getattr__(name: str) -> object:
        """`from harness.run import main` is what a role's script calls (docs/contract.md); loaded when it is asked for."""
        if name != "main":
            raise AttributeError(name)
        from harness.run import steps

        return steps.main
