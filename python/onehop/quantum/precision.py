"""The precisions of a state."""

from onehop.arguments import instance
from onehop.error import BadInput

# In the last four the state is kept encoded by the codec of this name.
PRECISIONS = ("double", "single", "fp16", "bf16", "q8", "q6")
BLOCK_BITS = 4  # so many bits of an amplitude's place stay together


def is_encoded(precision: str) -> bool:
    """Whether the precision keeps the state encoded."""
    return precision in PRECISIONS[2:]


def require_plain(precision: str, what: str) -> None:
    """Raise BadInput if the precision keeps the state encoded, which `what` does not take."""
    if is_encoded(instance(precision, str, "precision")):
        raise BadInput(
            f"{what}: expected precision double or single, found {precision}, which keeps the state encoded"
        )
