"""From groups to what is published of them: boxes, hierarchies, texts, and reading these back."""
