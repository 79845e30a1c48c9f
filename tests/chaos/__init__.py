"""A fleet under fire: killed, stopped, restarted, with wrong clocks; then everything is counted.

``make chaos`` runs it for a minute, ``CHAOS_SECONDS=600`` longer.
"""
