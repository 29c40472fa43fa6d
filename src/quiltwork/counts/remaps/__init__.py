"""Each consumer's best reading of a released count: Bayes' rule in linear time, for every loss."""
