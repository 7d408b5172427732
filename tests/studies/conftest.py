"""As the tests of engine/, on one thread."""

from tests.engine.conftest import one_thread as one_thread
