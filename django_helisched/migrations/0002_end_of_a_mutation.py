"""On PostgreSQL: the end of a mutation as a function, whose statements a server reads and plans once per connection."""

from typing import Any

from django.db import migrations

# A plan that was made while the table was a page long would read all of it for ever: hence no plan may.
CREATE = """
CREATE OR REPLACE FUNCTION helisched_end(
    given_id uuid, given_fence bigint, given_number integer, given_start timestamptz, given_end timestamptz,
    given_worker text, given_result text, given_log text
) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    UPDATE helisched_job
    SET state = 'success', failure_reason = '', attempt_count = attempt_count + 1, completed_at = given_end,
        last_error = '', lease_holder = NULL, lease_expires_at = NULL,
        key_digest = CASE WHEN unique_until = 'terminal' THEN NULL ELSE key_digest END
    WHERE id = given_id AND fence = given_fence AND state = 'in_progress' AND cancel_requested_at IS NULL;
    IF NOT FOUND THEN
        PERFORM 1 FROM helisched_job WHERE id = given_id AND fence = given_fence AND state = 'in_progress';
        RAISE EXCEPTION USING
            ERRCODE = 'ZH001', MESSAGE = CASE WHEN FOUND THEN 'cancel requested' ELSE 'claim lost' END;
    END IF;
    INSERT INTO helisched_attempt (
        job_id, number, started_at, ended_at, worker_id, result, log, outcome, error_class, error, traceback
    ) VALUES (
        given_id, given_number, given_start, given_end, given_worker, given_result, given_log, 'success', '', '', ''
    );
END
$$
"""
DROP = "DROP FUNCTION IF EXISTS helisched_end(uuid, bigint, integer, timestamptz, timestamptz, text, text, text)"


def create(apps: Any, schema_editor: Any) -> None:
    """Make the function."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(CREATE)


def drop(apps: Any, schema_editor: Any) -> None:
    """Remove the function."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("helisched", "0001_initial")]

    operations = [migrations.RunPython(create, drop)]
