"""A fuzzer of every reader: mutated files must be refused in one line, announced, or change nothing unseen.

`mutations` damages files, `readers` are what reads them, `judging` says whether a reader held, and `running` runs
seeded cases in processes of their own. `python -m tests.fuzzing --reader agent --seed 123` repeats a case.
"""
