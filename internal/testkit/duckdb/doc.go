// Package duckdb queries exported tables with DuckDB. It is a package of its own because DuckDB takes long to link.
package duckdb
