"""The engine in figures: `python -m pipeline.bench` and `python -m pipeline.bench.load`.

Every figure is a ratio of things that were run in turns in one process. Raw times are kept beside
it, and all that is said of it (median, range, reached or not) is derived from them.
"""
