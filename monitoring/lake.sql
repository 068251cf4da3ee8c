-- Alerts over a lake (docs/FLEET.md), a row each, of what began within a day: duckdb -csv < lake.sql, beside the folder lake/.
-- Where all is well there is no row. A job's ranks are missing while it has not ended, too.
WITH every AS (
    SELECT * FROM read_parquet('lake/commit=*/runs.parquet', hive_partitioning = true, union_by_name = true)
    QUALIFY commit = max(commit) OVER (PARTITION BY recording)
), runs AS (
    SELECT * FROM every WHERE started > now() - INTERVAL 1 day
), alerts AS (
    SELECT 'cannot create' AS alert, app, job, host, rank, path, failures AS value FROM runs WHERE failures > 0
    UNION ALL
    SELECT 'failed', app, job, host, rank, path, coalesce(exit_status, run_status) FROM runs WHERE coalesce(exit_status, run_status) <> 0
    UNION ALL
    SELECT 'torn', app, job, host, rank, path, 1 FROM runs WHERE ending = 'torn'
    UNION ALL
    SELECT 'leaks', app, job, host, rank, path, leaked FROM runs WHERE leaked > 0
    UNION ALL
    SELECT 'nearly full', app, job, host, rank, path, peak_reserved FROM runs WHERE device_bytes > 0 AND peak_reserved > 0.9 * device_bytes
    UNION ALL
    SELECT 'missing ranks', min(app), job, '', '', min(path), TRY_CAST(size AS BIGINT) - count(DISTINCT rank)
    FROM runs GROUP BY job, step, size HAVING count(DISTINCT rank) < TRY_CAST(size AS BIGINT)
)
SELECT * FROM alerts ORDER BY ALL;
