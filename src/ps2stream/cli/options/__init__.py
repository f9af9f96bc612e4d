"""Options that several commands share, and the notation of their arguments."""
