"""What there is to know of the rows of a set before anything is trained on them: pure functions of texts and scores."""
