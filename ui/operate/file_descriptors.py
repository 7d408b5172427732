"""When more come than the system has descriptors for: each tab takes four, each connection one."""

from __future__ import annotations

from contextlib import suppress

MOST = 65_536  # descriptors: what goes through all of them takes no longer than it may


def more_descriptors() -> int:
    """Takes as many as the system gives whoever asks; unasked it gives 1,024. Returns how many there are; 0
    where the system does not say.
    """
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if 0 <= soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft
