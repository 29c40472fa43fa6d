"""The experiments themselves, one module per paper or subject; `registry.MODULES` lists them."""
