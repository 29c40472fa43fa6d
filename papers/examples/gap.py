"""A time point between two windows can leak both levels: what Theorem 3.1 does not cover.

Fair coins c_1, …, c_4 and X_t = (c_t, c_(t+1)) for t = 1, 2, 3: a chain whose neighbours share a
coin while X_1 and X_3 are independent. Each of the windows A = {1} and B = {3} answers a question
of level 1 about its own time point. Theorem 3.1 says 1 for secrets in A and B. But X_2 consists of
one coin of X_1 and one of X_3, and leaks 2.

    python -m papers.examples.gap
"""

from __future__ import annotations

import math

from quiltwork.beliefs import MarkovChain
from quiltwork.budget.accounting.accountant import Accountant
from quiltwork.budget.accounting.compose import influence_between, parallel

_COINS = ((0, 0), (0, 1), (1, 0), (1, 1))


def coin_chain() -> MarkovChain:
    """Return the chain X_t = (c_t, c_(t+1)): each state keeps one coin and adds a new one."""
    rows = [[0.5 if x[1] == y[0] else 0.0 for y in _COINS] for x in _COINS]
    return MarkovChain(rows, initial=[0.25] * 4, states=_COINS)


def likelihood(answers: tuple[int, int], secret: tuple[int, int]) -> float:
    """Return P(answers | X_2 = secret) under randomized response of level 1 on c_2 and c_3."""
    truth = math.e / (1 + math.e)
    return math.prod(
        truth if answer == coin else 1 - truth for answer, coin in zip(answers, secret, strict=True)
    )


def leakage_between() -> float:
    """Return the exact leakage about X_2, by enumeration."""
    return max(
        math.log(likelihood(answers, secret) / likelihood(answers, other_secret))
        for answers in _COINS
        for secret in _COINS
        for other_secret in _COINS
    )


def main() -> None:
    """Print the theorem's bound, the exact leakage and the accountant's bound."""
    chain = coin_chain()
    ab, ba = influence_between(chain, (1, 1), (3, 3), length=3)
    account = Accountant(chain, length=3)
    account.spend(dp_epsilon=1, start=1, stop=1)
    account.spend(dp_epsilon=1, start=3, stop=3)
    print(f"influences between the windows: {ab:.4g} and {ba:.4g}")
    print(f"Theorem 3.1, for secrets in the windows: {parallel(1, 1, ab, ba):.4g}")
    print(f"what X_2, between them, leaks:           {leakage_between():.4g}")
    print(f"the accountant, for every time point:    {account.epsilon():.4g}")


if __name__ == "__main__":
    main()
