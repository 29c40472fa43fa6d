"""Bayesian differential privacy: the leakage of a DP mechanism to every adversary.

An adversary knows any rows and wants to learn another one; under dependence the unknown rows carry
information about it. These functions convert between the level of a DP mechanism and its Bayesian
level.
"""
