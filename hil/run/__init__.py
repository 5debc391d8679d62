"""The engine of a run: plan, boot loop, rounds, recording; and a bisection, which is many runs."""
