"""Hostile input for every command and every public function: what comes back must be a sentence."""
