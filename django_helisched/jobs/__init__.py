"""What a job is: its states, its endings, its delays. Plain Python, no Django."""
