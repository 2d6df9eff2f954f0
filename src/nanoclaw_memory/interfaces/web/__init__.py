"""The page: see, correct and trust what agents know; rendered here, served by `ncm serve`."""
