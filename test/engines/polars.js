// Asks the questions of a document of a lake with Polars, and writes the rows of all answers as JSON: polars.js LAKE DOCUMENT
const pl = require("nodejs-polars");
const fs = require("fs");
const [lake, document] = process.argv.slice(2);
const context = pl.SQLContext();
// Each recording is in one commit here: else that with the last name counts.
const scan = (table) => pl.scanParquet(`${lake}/commit=*/${table}.parquet`, { hivePartitioning: true, tryParseHiveDates: false });
context.register("runs", scan("runs"));
const counted = scan("runs").select("commit", "run", "app", "job", "date");
for (const table of ["sites", "samples", "misses", "findings", "transfers"]) {
  context.register(table, scan(table).join(counted, { on: ["commit", "run"] }));
}
const answers = [...fs.readFileSync(document, "utf8").matchAll(/```sql\n([\s\S]*?)```/g)].map((m) => context.execute(m[1]).collectSync().rows());
// A number of 64 bits is a BigInt.
process.stdout.write(JSON.stringify(answers, (_, v) => (typeof v === "bigint" ? Number(v) : v)));
