// Package duckdb asks DuckDB what is in exported tables. It is a package of its own because DuckDB takes long to link.
package duckdb
