"""Quilts: what the rest of the data betrays past nodes that separate it from the secret."""
