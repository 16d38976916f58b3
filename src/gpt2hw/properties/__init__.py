"""The rules that each room keeps, as plain functions of the piece under test.

A property takes the piece as its first argument (`rows_sum_to_one(softmax, x)`) and
raises AssertionError, with a message that says which rule broke, when it does not hold.
The tests apply the properties to this package; readers may apply them to their own.
"""
