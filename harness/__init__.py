"""An autonomous agent harness that keeps all its state in plain files."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:  # the public names
    from harness.builtin.library import *  # noqa: F403 - the list of them is there
else:

    def __getattr__(name: str) -> object:
        """The public Python interface (docs/sessions.md); all its names are classes."""
        if name[0].isupper():
            from harness.builtin import library  # on first use: every command imports this package

            if name in library.__all__:
                return getattr(library, name)
        raise AttributeError(name)
