"""Each consumer's best reading of a released count, by Bayes' rule."""
