"""The benchmark: every promise about speed beside its reference, in one run on one machine.

A figure alone says more about the machine than about the program. So each of ours is measured
in turn with the plainest program that does the same work on the same servers, round about, and
what is reported is the ratio of the medians. Timings decide no test.
"""
