"""Why one mechanism is best for all: the consumer's program, its vertices, the lemmas."""
