"""The papers' figures, lemmas and counterexamples, computed.

`gap` and `theorem_3_4` are counterexamples to composition: `python -m papers.examples.NAME`.
"""
