"""The optimal reading of a released count for each consumer, computed by `remap.choose`.

| loss | answers | costs | n |
|---|---|---|---|
| absolute, asymmetric, squared, binary | `centres` | `centres` | any |
| any other | `remap` | `remap` | up to 10,000 |

Both use the posteriors of `posteriors`.
"""
