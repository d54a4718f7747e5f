"""specsweep's measuring side: models, exact verification, honest timing, and the sweep."""
