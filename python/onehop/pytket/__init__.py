"""pytket's backend interface on the state vectors of onehop: `OnehopBackend`."""

try:
    import pytket  # noqa: F401
except ImportError as error:
    raise ImportError("onehop.pytket needs pytket: `pip install pytket`") from error

from onehop.pytket.backend import OnehopBackend

__all__ = ["OnehopBackend"]
