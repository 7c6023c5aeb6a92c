"""Processes that work for another one: how they are started, fed, watched and ended."""
