"""Quilts: sets of nodes that separate a secret from the remote rest, and their max-influence."""
