"""The commands, one a file: they translate arguments, call one function each, and print what it returns.

Imports of torch and its company are inside the commands, so that --help and mistakes are answered at once.
"""
