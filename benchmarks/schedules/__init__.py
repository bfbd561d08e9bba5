"""Schedules of libtpu: reading them and running their scalar code."""
