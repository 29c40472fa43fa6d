"""What a table protects and what it lost: privacy models, information loss, query error."""
