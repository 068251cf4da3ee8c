-- Questions to a folder runs/ that gpumemtop export --format parquet wrote: duckdb < queries.sql

-- Memory by host over time, second by second
SELECT host, second, sum(in_use) AS in_use, sum(peak) AS at_most
FROM (
    SELECT host, recording, number, time_bucket(INTERVAL 1 second, time) AS second,
        arg_max(in_use, time_ns) AS in_use, max(peak_in_use) AS peak
    FROM 'runs/samples/**/*.parquet' GROUP BY ALL
)
GROUP BY ALL ORDER BY second, host;

-- Which call site leaks, and on which rank?
SELECT site, host, process, count(*) AS buffers, sum(granted) AS bytes
FROM 'runs/buffers/**/*.parquet'
WHERE leaked AND owns
GROUP BY ALL ORDER BY bytes DESC, site, host, process;

-- Which ranks need more memory than the median?
SELECT host, process, array_to_string(arguments, ' ') AS arguments, peak_in_use
FROM 'runs/processes/**/*.parquet'
WHERE peak_in_use > (SELECT median(peak_in_use) FROM 'runs/processes/**/*.parquet')
ORDER BY peak_in_use DESC, host, process;

-- Why does the driver have to create buffers, where, and what does it cost?
SELECT site, reason, count(*) AS misses, sum(cost_ns) / 1e6 AS driver_ms
FROM 'runs/buffers/**/*.parquet'
WHERE outcome = 'miss' AND NOT carried
GROUP BY ALL ORDER BY driver_ms DESC, site, reason;

-- Which buffers are held longest after their last use?
SELECT host, process, site, granted, (released_ns - last_use_ns) / 1e9 AS idle_s
FROM 'runs/buffers/**/*.parquet'
WHERE released_ns > last_use_ns
ORDER BY idle_s DESC, host, process, object LIMIT 10;
