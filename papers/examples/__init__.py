"""What only the papers need: their figures, lemmas and examples of failure, computed.

`gap` and `theorem_3_4` show what does not compose: `python -m papers.examples.NAME`.
"""
