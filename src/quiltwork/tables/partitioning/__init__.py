"""From records to groups: Mondrian, cuts between providers, local repair, guards of constraints."""
