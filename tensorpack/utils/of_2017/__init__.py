"""Helpers that scripts of 2017 import, and nothing in the library needs."""
