"""From a frame to its handler and back, and the short ways for what comes by the ten thousand."""
