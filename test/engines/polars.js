// Asks the questions of a document of a lake with Polars, and writes the rows of all answers as JSON: polars.js LAKE DOCUMENT
const pl = require("nodejs-polars");
const fs = require("fs");
const [lake, document] = process.argv.slice(2);
const context = pl.SQLContext();
for (const table of ["runs", "sites", "samples", "misses", "findings", "transfers"]) {
  context.register(table, pl.scanParquet(`${lake}/${table}/**/*.parquet`, { hivePartitioning: true, tryParseHiveDates: false }));
}
const answers = [...fs.readFileSync(document, "utf8").matchAll(/```sql\n([\s\S]*?)```/g)].map((m) => context.execute(m[1]).collectSync().rows());
// A number of 64 bits is a BigInt.
process.stdout.write(JSON.stringify(answers, (_, v) => (typeof v === "bigint" ? Number(v) : v)));
