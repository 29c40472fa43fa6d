"""Bayesian differential privacy: what a DP mechanism betrays to every adversary.

An adversary knows any rows and asks about another one; under dependence the unknown rows tell on
it. Functions here translate between the level of a DP mechanism and its Bayesian level.
"""
