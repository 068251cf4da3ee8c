package wire

// CopyMin is the Config.CopyMin of every session that gpumemtop starts, in bytes: filling a recycled block takes a
// command, and below some megabytes that costs more than a new buffer (docs/RATIONALE.md). Attach applies the same limit
// to say which creates a pool could have served.
const CopyMin = 4 << 20
