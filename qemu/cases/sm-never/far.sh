# No subnet manager, ever.
