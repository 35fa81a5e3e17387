"""What every page and command shows, frozen while the code is moved. Temporary: it goes when the move is done.

`sentences.txt` is for reading only: each kind of English sentences with sample facts, as commands print it and as pages
say it.
"""
