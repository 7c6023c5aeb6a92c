"""Trainers of several processes: how a group of them starts, stops and fails together."""
