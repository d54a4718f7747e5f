"""Keeps what a sweep found, and shows it: MLflow, tables, figures, the machine's own description.

Knows `pipeline.records` and nothing else of `pipeline`.
"""
