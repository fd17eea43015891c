"""Settings shared by all tests."""

from hypothesis import settings

# Timing on a shared machine is noise; a failing example is printed with how to reproduce it.
settings.register_profile("dae", deadline=None, print_blob=True)
settings.load_profile("dae")
