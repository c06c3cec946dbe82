"""Makes records from what people have: runs, golden question sets, judge labels, benchmark results.

Run it as `python -m harness COMMAND …` from the folder that holds metrics.py.
"""
