"""Where jobs and crons are kept. ``base`` is the contract; ``memory`` and ``orm`` keep it."""
