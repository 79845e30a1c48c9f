"""What a cron is, and every decision about one: plain Python, no Django, no clock, no database."""
