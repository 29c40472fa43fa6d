"""Releases: a private answer with its error bars, its preview, and free post-processing."""
