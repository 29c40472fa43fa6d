"""Each reader's best reading of a released count, found by `remap.choose`.

| loss | answers | what they cost | n |
|---|---|---|---|
| absolute, asymmetric, squared, binary | `centres` | `centres` | any |
| any other | `remap` | `remap` | up to 10,000 |

All over `posteriors`.
"""
